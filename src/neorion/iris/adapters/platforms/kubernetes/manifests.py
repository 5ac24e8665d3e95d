"""Worker Pods and NodePools as they are sent to the API server."""

from typing import Any, Final

import msgspec

from neorion.iris.adapters.platforms.kubernetes.names import Names
from neorion.iris.adapters.platforms.kubernetes.record import TOKEN, Record
from neorion.iris.adapters.platforms.kubernetes.settings import (
    TOLERATED,
    GroupTemplate,
    KubernetesSettings,
    PoolTemplate,
)
from neorion.iris.adapters.runtimes.kubernetes import (
    POD_NAME_ENV,
    POD_UID_ENV,
    TASK_PODS_ACCOUNT,
    PodSettings,
)
from neorion.iris.model import Resources

CACHE: Final = "/var/cache/iris"
SECRETS: Final = "/var/run/secrets/iris"
# A node that says nothing for so long is lost; Kubernetes' own five minutes would hold up a gang.
_UNREACHABLE_S: Final = 60
# After its tasks have ended a worker tells of it.
_REPORT_S: Final = 5
_SECURITY: Final = {
    "privileged": False,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
_ADDRESS: Final = {"name": "IRIS_VM_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
_OWN_POD: Final = tuple(
    {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{field}"}}}
    for name, field in ((POD_NAME_ENV, "name"), (POD_UID_ENV, "uid"))
)
# A worker whose tasks run in Pods of their own.
_BESIDE_TASKS: Final = {
    "requests": {"cpu": "100m", "memory": "256Mi"},
    "limits": {"memory": "1Gi"},
}
# Autoscalers that move Pods around leave this one alone.
_DO_NOT_DISRUPT: Final = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
_INTERRUPTIBLE: Final = {"qos.coreweave.com/graceful-interruptible": "true"}


def pool_manifest(record: Record, target: int, template: PoolTemplate, names: Names) -> dict[str, Any]:
    """A NodePool whose nodes carry the labels of its slice. Those of a shared one get a slice's label when they are assigned."""
    group = record.group
    labels = names.group_labels(group) if record.shared else names.labels(group, record.id)
    return {
        "metadata": {"name": record.pool, "labels": labels, "annotations": dict(template.annotations)},
        "spec": {
            "computeClass": template.compute_class,
            "instanceType": template.instance_type,
            "targetNodes": target,
            "autoscaling": False,
            "nodeLabels": labels,
            # The worker Pods of one slice are gone when its pool goes; what else runs there does not keep a machine.
            "lifecycle": {"scaleDownStrategy": "IdleOnly" if record.shared else "PreferIdle"},
        },
    }


def pod_manifest(record: Record, number: int, settings: KubernetesSettings, names: Names) -> dict[str, Any]:
    """The worker of one machine. It belongs to the record, so that it cannot outlive it."""
    template = settings.groups[record.group]
    labels = names.labels(record.group, record.id)
    # What makes Pods only may run anywhere; on a bought machine it shows that the machine is there.
    runs_tasks = template.pool is not None or not template.task_pods
    owner = {"apiVersion": "v1", "kind": "Secret", "name": record.name, "uid": record.uid}
    volumes = _volumes(record, template)
    return {
        "metadata": {
            "name": names.worker(record.name, number, record.machines),
            "namespace": names.namespace,
            "labels": {**labels, names.number: str(number), **(_INTERRUPTIBLE if template.pool else {})},
            "annotations": _DO_NOT_DISRUPT,
            "ownerReferences": [owner],
        },
        "spec": {
            "restartPolicy": "Always",
            **_account(template),
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": _grace_s(settings) + _REPORT_S,
            "imagePullSecrets": [{"name": name} for name in settings.pull_secrets],
            "nodeSelector": _selector(record, template, names) if runs_tasks else {},
            "tolerations": _tolerations(),
            **(_network() if settings.host_network else {}),
            **(_one_per_machine(record, names) if template.pool else {}),
            "containers": [_container(record, settings, names)],
            "volumes": [volume for volume, _ in volumes],
        },
    }


def _container(record: Record, settings: KubernetesSettings, names: Names) -> dict[str, Any]:
    template = settings.groups[record.group]
    variables = [{"name": name, "value": value} for name, value in settings.variables.items()]
    return {
        "name": "iris-worker",
        "image": settings.image,
        "command": _command(record, settings, names),
        "env": [_ADDRESS, *(_OWN_POD if template.task_pods else ()), *variables],
        "securityContext": _SECURITY,
        "resources": _BESIDE_TASKS if template.task_pods else _resources(record.spec.shape, template),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [mount for _, mount in _volumes(record, template)],
    }


def _command(record: Record, settings: KubernetesSettings, names: Names) -> list[str]:
    template = settings.groups[record.group]
    spec, shape = record.spec, record.spec.shape
    flags = {
        "--runtime": "kubernetes" if template.task_pods else "process",
        "--controller": spec.controller,
        "--slice": spec.id,
        "--token-file": f"{SECRETS}/{TOKEN}",
        "--folder": CACHE,
        "--cpu": f"{shape.cpu_milli}m",
        "--memory": str(shape.memory),
        "--disk": str(shape.disk),
        "--gpus": str(shape.gpus),
        "--gpu-variant": shape.gpu_variant,
        "--stop-grace": str(_grace_s(settings)),
        "--log": "json",
    }
    if template.task_pods:
        flags["--task-pods"] = msgspec.json.encode(_task_pods(record, settings, names)).decode()
    command = ["python", "-P", "-m", "iris.cluster.worker.main", "serve"]
    command += [f"{flag}={value}" for flag, value in flags.items()]
    return [*command, *(f"--attribute={key}={value}" for key, value in spec.attributes)]


def _grace_s(settings: KubernetesSettings) -> int:
    return max(1, round(settings.stop_grace.seconds))


def _task_pods(record: Record, settings: KubernetesSettings, names: Names) -> PodSettings:
    """Pods of attempts run on the nodes of the slice, but do not carry its label: one worker for each machine is told by it."""
    template = settings.groups[record.group]
    return PodSettings(
        namespace=names.namespace,
        worker="",
        image=settings.task_image,
        labels={**names.group_labels(record.group), **(_INTERRUPTIBLE if template.pool else {})},
        node_selector=_selector(record, template, names),
        tolerations=tuple(_always_tolerated()),
        pull_secrets=settings.pull_secrets,
        devices={"rdma/ib": "1"} if template.infiniband else {},
    )


def _account(template: GroupTemplate) -> dict[str, Any]:
    """No token of the cluster lies where tasks run; a worker that runs none makes their Pods with one."""
    if not template.task_pods:
        return {"automountServiceAccountToken": False}
    return {"serviceAccountName": TASK_PODS_ACCOUNT}


def _volumes(record: Record, template: GroupTemplate) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each volume with its mount. Empty directories lie on the machine's fast disks."""
    token = {"secretName": record.name, "items": [{"key": TOKEN, "path": TOKEN}], "defaultMode": 0o400}
    found: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (
            {"name": "token", "secret": token},
            {"name": "token", "mountPath": SECRETS, "readOnly": True},
        ),
        ({"name": "cache", "emptyDir": {}}, {"name": "cache", "mountPath": CACHE}),
    ]
    if record.spec.shape.gpus and not template.task_pods:
        # NCCL and data loaders share memory; the default of 64 MiB is too small for them.
        found.append(
            (
                {"name": "shm", "emptyDir": {"medium": "Memory"}},
                {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 -- where libraries look for it
            )
        )
    return found


def _resources(shape: Resources, template: GroupTemplate) -> dict[str, Any]:
    """On a machine of its own the worker claims only devices: what the system needs there is left to the system."""
    devices: dict[str, str] = {"nvidia.com/gpu": str(shape.gpus)} if shape.gpus else {}
    if template.infiniband:
        # A switch that leads to InfiniBand nodes, not a count.
        devices["rdma/ib"] = "1"
    if template.pool is not None:
        return {"limits": devices, "requests": dict(devices)}
    memory = {"memory": str(shape.memory)}
    disk = {"ephemeral-storage": str(shape.disk)} if shape.disk else {}
    return {
        "requests": {"cpu": f"{shape.cpu_milli}m", **memory, **disk, **devices},
        "limits": {**memory, **disk, **devices},
    }


def _selector(record: Record, template: GroupTemplate, names: Names) -> dict[str, str]:
    own = {names.slice_id: str(record.id)} if template.pool is not None else {}
    return {**template.node_selector, **own}


def _tolerations() -> list[dict[str, Any]]:
    lost = [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _UNREACHABLE_S,
        }
        for key in ("not-ready", "unreachable")
    ]
    return [*_always_tolerated(), *lost]


def _always_tolerated() -> list[dict[str, Any]]:
    return [{"key": key, "operator": "Exists", "effect": effect} for key, effect in TOLERATED]


def _network() -> dict[str, Any]:
    return {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}


def _one_per_machine(record: Record, names: Names) -> dict[str, Any]:
    term = {
        "labelSelector": {"matchLabels": {names.slice_id: str(record.id)}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
