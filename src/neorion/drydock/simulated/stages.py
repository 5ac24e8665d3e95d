"""How simulated nodes and pods go through their lives: what KWOK is to do, and when.

A node becomes Ready after its boot time. A pod on it runs at once; it ends by itself if it belongs to a Job or says how
long it runs, and with the exit code that it says.
"""

from typing import Any, Final

import yaml

# On a node: how long it takes to boot, as in "30s".
BOOT_TIME: Final = "drydock.neorion.dev/boot-time"
# On a pod: how long it runs, and how it ends.
RUNS_FOR: Final = "drydock.neorion.dev/runs-for"
EXIT_CODE: Final = "drydock.neorion.dev/exit-code"
_JOB_RUNS_MS: Final = 1000

_NODE_READY: Final = """
{{ $now := Now }}
conditions:
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  status: {{ .status | Quote }}
  reason: {{ .reason | Quote }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
nodeInfo:
  architecture: amd64
  operatingSystem: linux
  kubeletVersion: "%(version)s"
  kubeProxyVersion: ""
  containerRuntimeVersion: "kwok://{{ Version }}"
  kernelVersion: simulated
  osImage: simulated
  bootID: ""
  machineID: ""
  systemUUID: {{ .metadata.uid | Quote }}
"""

_POD_RUNNING: Final = """
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
conditions:
{{ range $type := list "PodReadyToStartContainers" "Initialized" "ContainersReady" "Ready" }}
- type: {{ $type }}
  status: "True"
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
{{ range .spec.readinessGates }}
- type: {{ .conditionType | Quote }}
  status: "True"
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  started: true
  restartCount: 0
  resources:
{{ YAML (or .resources dict) 2 }}
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  restartCount: 0
{{ if eq .restartPolicy "Always" }}
  started: true
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ else }}
  state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}}
{{ end }}
{{ end }}
{{ with NodeIPsWith .spec.nodeName }}
hostIP: {{ index . 0 | Quote }}
hostIPs: [{ip: {{ index . 0 | Quote }}}]
{{ end }}
{{ with PodIPsWith .spec.nodeName (or .spec.hostNetwork false) .metadata.uid .metadata.name .metadata.namespace }}
podIP: {{ index . 0 | Quote }}
podIPs: [{ip: {{ index . 0 | Quote }}}]
{{ end }}
"""

_POD_ENDED: Final = """
{{ $now := Now }}
{{ $code := or (index (or .metadata.annotations dict) "%(exit_code)s") "0" }}
{{ $began := .status.startTime }}
phase: {{ if eq $code "0" }}Succeeded{{ else }}Failed{{ end }}
conditions:
{{ range $type := list "ContainersReady" "Ready" }}
- type: {{ $type }}
  status: "False"
  reason: PodCompleted
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: false
  started: false
  restartCount: 0
  state:
    terminated:
      exitCode: {{ $code }}
      reason: {{ if eq $code "0" }}Completed{{ else }}Error{{ end }}
      startedAt: {{ $began | Quote }}
      finishedAt: {{ $now | Quote }}
{{ end }}
"""

_LIVES: Final = (".metadata.deletionTimestamp", "DoesNotExist")
_RUNS: Final = (".status.phase", "In", "Running")
_SAYS_HOW_LONG: Final = f'.metadata.annotations["{RUNS_FOR}"]'


def stages(version: str) -> str:
    """KWOK's configuration; nodes say that their kubelet is of `version`."""
    ready = '.status.conditions.[] | select(.type == "Ready") | .status'
    ended = {"statusTemplate": _POD_ENDED % {"exit_code": EXIT_CODE}}
    return yaml.safe_dump_all(
        [
            _stage(
                "node-boots",
                "Node",
                [(ready, "NotIn", "True")],
                {"statusTemplate": _NODE_READY % {"version": version}},
                _after(0, f'.metadata.annotations["{BOOT_TIME}"]'),
            ),
            _stage(
                "pod-starts",
                "Pod",
                [_LIVES, (".status.phase", "In", "Pending"), (ready, "NotIn", "True")],
                {"statusTemplate": _POD_RUNNING},
            ),
            _stage(
                "job-ends",
                "Pod",
                [
                    _LIVES,
                    _RUNS,
                    (".metadata.ownerReferences.[].kind", "In", "Job"),
                    (_SAYS_HOW_LONG, "DoesNotExist"),
                ],
                ended,
                _after(_JOB_RUNS_MS),
            ),
            _stage(
                "pod-ends",
                "Pod",
                [_LIVES, _RUNS, (_SAYS_HOW_LONG, "Exists")],
                ended,
                _after(0, _SAYS_HOW_LONG),
            ),
            _stage("pod-goes", "Pod", [(".metadata.deletionTimestamp", "Exists")], {"delete": True}),
        ],
        sort_keys=False,
    )


def _stage(
    name: str,
    kind: str,
    when: list[tuple[str, ...]],
    then: dict[str, Any],
    delay: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": [_condition(*each) for each in when]},
            **({"delay": delay} if delay else {}),
            "next": then,
        },
    }


def _condition(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def _after(otherwise_ms: int, said_at: str = "") -> dict[str, Any]:
    said = {"durationFrom": {"expressionFrom": said_at}} if said_at else {}
    return {"durationMilliseconds": otherwise_ms, **said}
