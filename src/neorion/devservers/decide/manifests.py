"""The objects a server is made of, each as the whole that is applied. The same server always gives the same objects."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neorion.devservers.decide.names import (
    HOME_CLASS,
    HOME_LABEL,
    RANK_LABEL,
    SCRIPTS_LABEL,
    SCRIPTS_NAME,
    SERVER_LABEL,
    SHM_VOLUME,
    home_name,
    host_key_name,
    keys_name,
    service_name,
)
from neorion.devservers.decide.probe import SSH_PORT
from neorion.devservers.decide.scripts import SCRIPTS
from neorion.devservers.decide.sshd_injection import AUTHORIZED_KEYS, HOST_KEY, add_sshd
from neorion.devservers.model import GROUP, VERSION, DevServerFlavorSpec, DevServerSpec, Toleration

Manifest = dict[str, Any]

HOME = "/home/dev"
SHARED = "/shared"
SHM = "/dev/shm"  # noqa: S108 -- the shared memory of the container itself
SCRIPTS_AT = "/opt/devserver/bin"
# A person who is asked to leave gets this long to save.
GRACE_SECONDS = 30
# Group of files in the home. Images may run as any user.
GROUP_ID = 1000
# A Service needs a port, although no program listens on this one. It could not become headless later.
_NO_PORT = {"name": "none", "port": 9, "targetPort": 9}


@dataclass(frozen=True, slots=True)
class OwnerIdentity:
    """Which server the objects belong to."""

    name: str
    namespace: str
    uid: str


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """Settings of the operator for every server. In an `autoscaled` cluster, nodes are created for pending pods.

    With `kueue`, servers with a queue have no Pods before Kueue has admitted them.
    `tools_image` brings sshd into every server that wants it; without it there is none.
    """

    default_image: str
    autoscaled: bool = False
    tools_image: str = ""
    kueue: bool = False


def all_of(
    server: OwnerIdentity,
    spec: DevServerSpec,
    flavor: DevServerFlavorSpec,
    settings: OperatorSettings,
    resources: Manifest | None = None,
    user_keys: str = "",
) -> tuple[Manifest, ...]:
    """Everything, in an order in which each finds what it needs. `resources` keep a pod that was resized as it is.

    `user_keys` are lines of `authorized_keys` that hold for every server of the user.
    """
    body = deployment(server, spec, flavor, settings)
    if resources is not None:
        body["spec"]["template"]["spec"]["containers"][0]["resources"] = resources
    keys = (ssh_keys(server, spec, user_keys),) if settings.tools_image else ()
    return (home(server, spec), scripts(server.namespace), *keys, service(server, spec, settings), body)


def home(server: OwnerIdentity, spec: DevServerSpec) -> Manifest:
    """The home volume of a server that has one."""
    return home_claim(server, spec, home_name(server.name))


def home_claim(server: OwnerIdentity, spec: DevServerSpec, name: str) -> Manifest:
    """Home volume of that name. It has no owner: deleting the server must not take it along."""
    together = spec.distributed is not None and not spec.distributed.has_rank_homes
    wanted: Manifest = {
        "accessModes": ["ReadWriteMany" if together else "ReadWriteOnce"],
        "resources": {"requests": {"storage": spec.persistent_home_size}},
    }
    body = owned(server, "v1", "PersistentVolumeClaim", name, {"spec": wanted})
    body["metadata"]["labels"][HOME_LABEL] = server.name
    if spec.home.storage_class is not None:
        wanted["storageClassName"] = spec.home.storage_class
        body["metadata"]["annotations"] = {HOME_CLASS: spec.home.storage_class}
    del body["metadata"]["ownerReferences"]
    return body


def scripts(namespace: str) -> Manifest:
    """The ConfigMap of scripts for all servers of a namespace. No server owns it, because it is the same for each."""
    metadata = {"name": SCRIPTS_NAME, "namespace": namespace, "labels": {SCRIPTS_LABEL: "true"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(SCRIPTS)}


def ssh_keys(server: OwnerIdentity, spec: DevServerSpec, user_keys: str = "") -> Manifest:
    """The ConfigMap of authorized keys. It is not part of the pod, which need not restart for a new key."""
    lines = user_keys + "".join(f"{key}\n" for key in (spec.ssh.public_keys if spec.ssh else ()))
    body = owned(server, "v1", "ConfigMap", keys_name(server.name), {"data": {AUTHORIZED_KEYS: lines}})
    body["metadata"]["labels"][SCRIPTS_LABEL] = "true"
    return body


def host_key_secret(server: OwnerIdentity, key: str) -> Manifest:
    return owned(server, "v1", "Secret", host_key_name(server.name), {"stringData": {HOST_KEY: key}})


def service(server: OwnerIdentity, spec: DevServerSpec, settings: OperatorSettings) -> Manifest:
    """Port 22 leads to our sshd, or to one that the image brings."""
    inside = SSH_PORT if settings.tools_image else 22
    ports = [{"name": "ssh", "port": 22, "targetPort": inside}] if spec.enable_ssh else []
    ports += [{"name": one.name, "port": one.port, "targetPort": one.port} for one in spec.ports]
    # Of a distributed server, the first rank alone is reached by this name.
    first = {RANK_LABEL: "0"} if spec.distributed is not None else {}
    wanted: Manifest = {
        "selector": {SERVER_LABEL: server.name, **first},
        "type": "ClusterIP",
        "ports": ports or [_NO_PORT],
    }
    return owned(server, "v1", "Service", service_name(server.name), {"spec": wanted})


def deployment(
    server: OwnerIdentity, spec: DevServerSpec, flavor: DevServerFlavorSpec, settings: OperatorSettings
) -> Manifest:
    """One pod at most, and the old one goes before the new one comes: the home can be mounted once."""
    # Nothing that changes with the flavor's name alone may stand in the template: another template is another pod.
    labels = {SERVER_LABEL: server.name}
    wanted: Manifest = {
        "replicas": 1 if spec.running else 0,
        "revisionHistoryLimit": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": {SERVER_LABEL: server.name}},
        "template": {"metadata": {"labels": labels}, "spec": pod_spec(server, spec, flavor, settings)},
    }
    body = owned(server, "apps/v1", "Deployment", server.name, {"spec": wanted})
    add_queue(body, spec, flavor)
    return body


def add_queue(body: Manifest, spec: DevServerSpec, flavor: DevServerFlavorSpec) -> None:
    queue = spec.queue.name if spec.queue else flavor.queue
    if queue is not None:
        body["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue


def resources_of(flavor: DevServerFlavorSpec) -> Manifest:
    """Resources as strings, which the API server returns, so that applied objects equal the observed ones."""
    asked = {"requests": flavor.resources.requests, "limits": flavor.resources.limits}
    return {
        part: {name: str(amount) for name, amount in amounts.items()}
        for part, amounts in asked.items()
        if amounts
    }


def owned(server: OwnerIdentity, version: str, kind: str, name: str, body: Mapping[str, Any]) -> Manifest:
    owner = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "DevServer",
        "name": server.name,
        "uid": server.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata: Manifest = {
        "name": name,
        "namespace": server.namespace,
        "labels": {SERVER_LABEL: server.name},
        "ownerReferences": [owner],
    }
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **body}


def pod_spec(
    server: OwnerIdentity, spec: DevServerSpec, flavor: DevServerFlavorSpec, settings: OperatorSettings
) -> Manifest:
    volumes, mounts = _volumes(server, spec, flavor)
    container: Manifest = {
        "name": "dev",
        "image": spec.image or flavor.image or settings.default_image,
        "imagePullPolicy": "IfNotPresent",
        # Any image stays up: a shell waits, and hands a stop on at once instead of after the whole grace.
        "command": ["/bin/sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 86400 & wait $!; done"],
        "workingDir": HOME,
        "env": [
            {"name": "HOME", "value": HOME},
            {"name": "DEVSERVER_NAME", "value": server.name},
            {"name": "DEVSERVER_OWNER", "value": spec.owner or ""},
            {"name": "DEVSERVER_MODE", "value": spec.mode.value},
        ],
        "resources": resources_of(flavor),
        # CPU and memory may change under a running server; see the rules of resizing.
        "resizePolicy": [
            {"resourceName": "cpu", "restartPolicy": "NotRequired"},
            {"resourceName": "memory", "restartPolicy": "NotRequired"},
        ],
        "volumeMounts": mounts,
        "securityContext": {"allowPrivilegeEscalation": False, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    if spec.ports:
        container["ports"] = [{"name": one.name, "containerPort": one.port} for one in spec.ports]
    pod: Manifest = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        # Changing the owner of every file of a large home takes many minutes; only a wrong root is worth it.
        "securityContext": {"fsGroup": GROUP_ID, "fsGroupChangePolicy": "OnRootMismatch"},
        "containers": [container],
        "volumes": volumes,
    }
    if settings.tools_image:
        add_sshd(pod, settings.tools_image, keys_name(server.name), host_key_name(server.name))
    if flavor.node_selector:
        pod["nodeSelector"] = dict(flavor.node_selector)
    if flavor.tolerations:
        pod["tolerations"] = [toleration(one) for one in flavor.tolerations]
    return pod


def _volumes(
    server: OwnerIdentity, spec: DevServerSpec, flavor: DevServerFlavorSpec
) -> tuple[list[Manifest], list[Manifest]]:
    shm: Manifest = {"medium": "Memory"}
    if flavor.shm is not None:
        shm["sizeLimit"] = flavor.shm
    volumes: list[Manifest] = [
        {"name": "home", "persistentVolumeClaim": {"claimName": home_name(server.name)}},
        {"name": SHM_VOLUME, "emptyDir": shm},
        {"name": "scripts", "configMap": {"name": SCRIPTS_NAME, "defaultMode": 0o755}},
    ]
    mounts: list[Manifest] = [
        {"name": "home", "mountPath": HOME},
        {"name": SHM_VOLUME, "mountPath": SHM},
        {"name": "scripts", "mountPath": SCRIPTS_AT},
    ]
    if spec.shared_volume_claim_name is not None:
        volumes.append(
            {"name": "shared", "persistentVolumeClaim": {"claimName": spec.shared_volume_claim_name}}
        )
        mounts.append({"name": "shared", "mountPath": SHARED})
    for number, volume in enumerate(spec.volumes):
        name = f"volume-{number}"
        claim: Manifest = {"claimName": volume.claim_name, "readOnly": volume.read_only}
        volumes.append({"name": name, "persistentVolumeClaim": claim})
        mounts.append({"name": name, "mountPath": volume.mount_path, "readOnly": volume.read_only})
    return volumes, mounts


def toleration(taint: Toleration) -> Manifest:
    given = {
        "key": taint.key,
        "operator": taint.operator,
        "value": taint.value,
        "effect": taint.effect,
    }
    return {name: value for name, value in given.items() if value is not None}
