"""The lifecycle of simulated nodes and pods, as a configuration of KWOK.

A node becomes Ready after its boot time. A pod on it runs at once; it ends by itself if it belongs to a Job or has a
run time, with the exit code of its annotation.
"""

from typing import Any, Final

import yaml

# On a node: the time to boot, e.g. "30s".
BOOT_TIME: Final = "drydock.neorion.dev/boot-time"
# On a pod: its run time, and its exit code.
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

_NOT_DELETED: Final = (".metadata.deletionTimestamp", "DoesNotExist")
_RUNNING: Final = (".status.phase", "In", "Running")
_RUN_TIME: Final = f'.metadata.annotations["{RUNS_FOR}"]'


def stages(version: str) -> str:
    """KWOK's configuration; nodes report a kubelet of `version`."""
    ready = '.status.conditions.[] | select(.type == "Ready") | .status'
    ended = {"statusTemplate": _POD_ENDED % {"exit_code": EXIT_CODE}}
    return yaml.safe_dump_all(
        [
            _kwok_rule(
                "node-boots",
                "Node",
                [(ready, "NotIn", "True")],
                {"statusTemplate": _NODE_READY % {"version": version}},
                _after(0, f'.metadata.annotations["{BOOT_TIME}"]'),
            ),
            _kwok_rule(
                "pod-starts",
                "Pod",
                [_NOT_DELETED, (".status.phase", "In", "Pending"), (ready, "NotIn", "True")],
                {"statusTemplate": _POD_RUNNING},
            ),
            _kwok_rule(
                "job-ends",
                "Pod",
                [
                    _NOT_DELETED,
                    _RUNNING,
                    (".metadata.ownerReferences.[].kind", "In", "Job"),
                    (_RUN_TIME, "DoesNotExist"),
                ],
                ended,
                _after(_JOB_RUNS_MS),
            ),
            _kwok_rule(
                "pod-ends",
                "Pod",
                [_NOT_DELETED, _RUNNING, (_RUN_TIME, "Exists")],
                ended,
                _after(0, _RUN_TIME),
            ),
            _kwok_rule("pod-goes", "Pod", [(".metadata.deletionTimestamp", "Exists")], {"delete": True}),
        ],
        sort_keys=False,
    )


def _kwok_rule(
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


def _after(otherwise_ms: int, duration_at: str = "") -> dict[str, Any]:
    duration = {"durationFrom": {"expressionFrom": duration_at}} if duration_at else {}
    return {"durationMilliseconds": otherwise_ms, **duration}
