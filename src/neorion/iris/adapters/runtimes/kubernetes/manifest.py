"""The Pod of an attempt, as it is sent to the API server."""

from collections.abc import Mapping
from typing import Any, Final

from neorion.iris.adapters.runtimes.container.engine import ContainerSpec
from neorion.iris.adapters.runtimes.container.messages import HOST_ENV, RUNNER_COMMAND, RUNNER_FOLDER
from neorion.iris.adapters.runtimes.kubernetes.settings import (
    ATTEMPT_LABEL,
    GANG_LABEL,
    GANG_MEMBER_LABEL,
    GANG_SERVICE,
    WORKER_LABEL,
    PodSettings,
)
from neorion.iris.model import AttemptId, Resources

RUNNER: Final = "runner"
# A node that is silent for so long is lost to its attempts too; Kubernetes' own five minutes hold up a gang.
_UNREACHABLE_S: Final = 60
_GRACE_S: Final = 30
_SECURITY: Final = {
    "privileged": False,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
_ADDRESS: Final = {"name": HOST_ENV, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


def pod_name(attempt: AttemptId) -> str:
    """Unique for ever: an attempt's id never comes again."""
    return f"iris-{attempt}"


def pod_manifest(spec: ContainerSpec, settings: PodSettings) -> dict[str, Any]:
    """Tasks get nothing of the cluster: no service account, no names of Services, no capabilities."""
    owner, gang = settings.owner, spec.gang
    shared = {"name": "shm", "emptyDir": {"medium": "Memory"}}
    return {
        "metadata": {
            "name": pod_name(spec.attempt),
            "namespace": settings.namespace,
            "labels": {
                **settings.labels,
                WORKER_LABEL: settings.worker,
                ATTEMPT_LABEL: str(spec.attempt),
                **({GANG_MEMBER_LABEL: "true", GANG_LABEL: str(gang.leader)} if gang else {}),
            },
            **(
                {
                    "ownerReferences": [
                        {"apiVersion": "v1", "kind": "Pod", "name": owner.name, "uid": owner.uid}
                    ]
                }
                if owner is not None
                else {}
            ),
        },
        "spec": {
            "restartPolicy": "Never",
            **({"hostname": pod_name(spec.attempt), "subdomain": GANG_SERVICE} if gang else {}),
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": _GRACE_S,
            "imagePullSecrets": [{"name": name} for name in settings.pull_secrets],
            "nodeSelector": dict(settings.node_selector),
            "tolerations": [*map(dict, settings.tolerations), *_lost_nodes()],
            "containers": [_container(spec, settings)],
            "volumes": [
                {"name": "iris", "emptyDir": {}},
                *([shared] if spec.resources.gpus else []),
                *map(dict, settings.volumes),
            ],
        },
    }


def _container(spec: ContainerSpec, settings: PodSettings) -> dict[str, Any]:
    shared = {"name": "shm", "mountPath": "/dev/shm"}  # noqa: S108 -- where libraries look for it
    return {
        "name": RUNNER,
        "image": settings.image,
        "command": [settings.python, *RUNNER_COMMAND],
        "env": [_ADDRESS, *({"name": name, "value": value} for name, value in spec.variables.items())],
        "securityContext": _SECURITY,
        "resources": _resources(spec.resources, settings.devices),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "iris", "mountPath": RUNNER_FOLDER},
            *([shared] if spec.resources.gpus else []),
            *map(dict, settings.mounts),
        ],
    }


def _resources(asked: Resources, devices: Mapping[str, str]) -> dict[str, Any]:
    """Memory, disk and devices are limits too. Cores are shared out by weight, so that idle ones are of use."""
    gpus = {"nvidia.com/gpu": str(asked.gpus), **devices} if asked.gpus else {}
    memory = {"memory": str(asked.memory)} if asked.memory else {}
    disk = {"ephemeral-storage": str(asked.disk)} if asked.disk else {}
    cpu = {"cpu": f"{asked.cpu_milli}m"} if asked.cpu_milli else {}
    return {"requests": {**cpu, **memory, **disk, **gpus}, "limits": {**memory, **disk, **gpus}}


def _lost_nodes() -> list[dict[str, Any]]:
    return [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _UNREACHABLE_S,
        }
        for key in ("not-ready", "unreachable")
    ]
