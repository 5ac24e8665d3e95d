"""Worker Pods and NodePools as they are sent to the API server."""

from typing import Any, Final

from neorion.iris.adapters.platforms.kubernetes.names import Names
from neorion.iris.adapters.platforms.kubernetes.record import TOKEN, Record
from neorion.iris.adapters.platforms.kubernetes.settings import (
    TOLERATED,
    GroupTemplate,
    KubernetesSettings,
    PoolTemplate,
)
from neorion.iris.model import Resources

CACHE: Final = "/var/cache/iris"
SECRETS: Final = "/var/run/secrets/iris"
# A node that says nothing for so long is lost; Kubernetes' own five minutes would hold up a gang.
_UNREACHABLE_S: Final = 60
_SECURITY: Final = {
    "privileged": False,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
_ADDRESS: Final = {"name": "IRIS_VM_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
# Whoever moves Pods around asks before it moves this one, or lets it end what it can.
_DO_NOT_DISRUPT: Final = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
_INTERRUPTIBLE: Final = {"qos.coreweave.com/graceful-interruptible": "true"}


def pool_manifest(record: Record, template: PoolTemplate, names: Names) -> dict[str, Any]:
    """One NodePool for one slice; its nodes carry the slice's labels."""
    labels = names.labels(record.group, record.id)
    return {
        "metadata": {"name": record.name, "labels": labels, "annotations": dict(template.annotations)},
        "spec": {
            "computeClass": template.compute_class,
            "instanceType": template.instance_type,
            "targetNodes": record.wanted.machines,
            "autoscaling": False,
            "nodeLabels": labels,
            # The worker Pods are gone when the pool goes; what else runs there does not keep a machine.
            "lifecycle": {"scaleDownStrategy": "PreferIdle"},
        },
    }


def pod_manifest(record: Record, number: int, settings: KubernetesSettings, names: Names) -> dict[str, Any]:
    """The worker of one machine. It belongs to the record, so that it cannot outlive it."""
    template = settings.groups[record.group]
    labels = names.labels(record.group, record.id)
    owner = {"apiVersion": "v1", "kind": "Secret", "name": record.name, "uid": record.uid}
    volumes = _volumes(record)
    return {
        "metadata": {
            "name": names.worker(record.name, number, record.wanted.machines),
            "namespace": names.namespace,
            "labels": {**labels, names.number: str(number), **(_INTERRUPTIBLE if template.pool else {})},
            "annotations": _DO_NOT_DISRUPT,
            "ownerReferences": [owner],
        },
        "spec": {
            "restartPolicy": "Always",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": max(1, round(settings.stop_grace.seconds)),
            "imagePullSecrets": [{"name": name} for name in settings.pull_secrets],
            "nodeSelector": _selector(record, template, names),
            "tolerations": _tolerations(),
            **(_network() if settings.host_network else {}),
            **(_one_per_machine(record, names) if template.pool else {}),
            "containers": [_container(record, settings)],
            "volumes": [volume for volume, _ in volumes],
        },
    }


def _container(record: Record, settings: KubernetesSettings) -> dict[str, Any]:
    variables = [{"name": name, "value": value} for name, value in settings.variables.items()]
    return {
        "name": "iris-worker",
        "image": settings.image,
        "command": _command(record),
        "env": [_ADDRESS, *variables],
        "securityContext": _SECURITY,
        "resources": _resources(record.wanted.shape, settings.groups[record.group]),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [mount for _, mount in _volumes(record)],
    }


def _command(record: Record) -> list[str]:
    wanted, shape = record.wanted, record.wanted.shape
    flags = {
        "--runtime": "process",
        "--controller": wanted.controller,
        "--slice": wanted.id,
        "--token-file": f"{SECRETS}/{TOKEN}",
        "--folder": CACHE,
        "--cpu": f"{shape.cpu_milli}m",
        "--memory": str(shape.memory),
        "--disk": str(shape.disk),
        "--gpus": str(shape.gpus),
        "--gpu-variant": shape.gpu_variant,
        "--log": "json",
    }
    command = ["python", "-P", "-m", "iris.cluster.worker.main", "serve"]
    command += [f"{flag}={value}" for flag, value in flags.items()]
    return [*command, *(f"--attribute={key}={value}" for key, value in wanted.attributes)]


def _volumes(record: Record) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each volume with its mount. Empty directories lie on the machine's fast disks."""
    token = {"secretName": record.name, "items": [{"key": TOKEN, "path": TOKEN}], "defaultMode": 0o400}
    found: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (
            {"name": "token", "secret": token},
            {"name": "token", "mountPath": SECRETS, "readOnly": True},
        ),
        ({"name": "cache", "emptyDir": {}}, {"name": "cache", "mountPath": CACHE}),
    ]
    if record.wanted.shape.gpus:
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
    always = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in TOLERATED]
    lost = [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _UNREACHABLE_S,
        }
        for key in ("not-ready", "unreachable")
    ]
    return [*always, *lost]


def _network() -> dict[str, Any]:
    return {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}


def _one_per_machine(record: Record, names: Names) -> dict[str, Any]:
    term = {
        "labelSelector": {"matchLabels": {names.slice_id: str(record.id)}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
