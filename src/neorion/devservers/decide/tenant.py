"""The namespace of a user: its limits, and the rights inside it. A name and a spec in, manifests out."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from neorion.devservers.decide.names import SCRIPTS_LABEL
from neorion.devservers.decide.probe import SSH_PORT
from neorion.devservers.decide.sshd_injection import AUTHORIZED_KEYS
from neorion.devservers.model import GROUP, kueue
from neorion.devservers.model.tenancy import (
    BASTION_ACCOUNT,
    CONSOLE,
    CONSOLE_LABEL,
    CONSOLE_POLICY,
    CREATED_BY_LABEL,
    LOCAL_QUEUE,
    OPERATOR_ACCOUNT,
    ROLE,
    SYSTEM_NAMESPACE,
    USER_CONTROLLER,
    USER_KEYS,
    USER_LABEL,
    account_name,
    login_name,
    own_namespace,
)
from neorion.devservers.model.user import DevServerUserSpec, UserQuota
from neorion.keel.base import Invalid, Quantity, UnitError

Manifest = dict[str, Any]

SERVERS_COUNTED: Final = f"count/devservers.{GROUP}"
_GPU: Final = "nvidia.com/gpu"
# As the API server reads it, which knows no bytes by name: 12GB is refused there.
_AMOUNT: Final = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|[KMGTP]i|[MGTP]|[eE][0-9]+)?")
_RBAC: Final = "rbac.authorization.k8s.io"
_OPERATOR: Final = {"kind": "ServiceAccount", "name": OPERATOR_ACCOUNT, "namespace": SYSTEM_NAMESPACE}
_BASTION: Final = {"kind": "ServiceAccount", "name": BASTION_ACCOUNT, "namespace": SYSTEM_NAMESPACE}
_ALL: Final = ("get", "list", "watch", "create", "update", "patch", "delete")
_READ: Final = ("get", "list", "watch")
# The addresses of nodes, pods and services, and of the clouds' metadata: nothing there is for a dev server to reach.
_INSIDE: Final = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16")


def checked_quota(quota: UserQuota) -> UserQuota:
    """Refuses an amount before anything is written: a namespace without its quota would be one without limits."""
    for name in ("servers", "cpu", "memory", "gpus", "storage"):
        amount = str(getattr(quota, name))
        if not _is_amount(amount):
            raise Invalid(
                "devservers.allowance",
                f'--{name} "{amount[:40]}" is not a valid amount.',
                hint="Write amounts as Kubernetes does, such as 64 or 256Gi.",
            )
    return quota


def quota_of(hard: Mapping[str, str]) -> UserQuota:
    """The quota of a user whose ResourceQuota allows this much. What it does not name is as for a new user."""
    new = UserQuota()
    return UserQuota(
        servers=_number(hard.get(SERVERS_COUNTED, new.servers)),
        cpu=hard.get("requests.cpu", new.cpu),
        memory=hard.get("requests.memory", new.memory),
        gpus=_number(hard.get(f"requests.{_GPU}", new.gpus)),
        storage=hard.get("requests.storage", new.storage),
    )


@dataclass(frozen=True, slots=True, order=True)
class ApiAddress:
    """An address and a port of the API server."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """The parts of a user's namespace that depend on the cluster.

    `gpu_kinds` are the cluster's, beside NVIDIA's whole ones. `authority` is the public key that signs the bastion's
    certificates; every server of the user accepts those. `api` are the addresses that consoles reach.
    """

    gpu_kinds: Collection[str] = ()
    authority: str = ""
    api: Collection[ApiAddress] = ()


def tenant_manifests(
    user: str, spec: DevServerUserSpec, cluster: ClusterInfo | None = None
) -> tuple[Manifest, ...]:
    """Everything a user has, limits first: no account before what holds it. A suspended user has no rights."""
    cluster = cluster or ClusterInfo()
    namespace = own_namespace(user)
    hard = _hard(spec.quota, cluster.gpu_kinds)
    walls = (
        _namespace(user),
        _object("v1", "ResourceQuota", namespace, {"spec": {"hard": hard}}),
        _object("v1", "LimitRange", namespace, {"spec": {"limits": [_defaults()]}}),
        _object("networking.k8s.io/v1", "NetworkPolicy", namespace, {"spec": _walls()}),
        *_console_policies(namespace, cluster.api),
        _binding(namespace, OPERATOR_ACCOUNT, _cluster_role(f"{OPERATOR_ACCOUNT}-writes"), _OPERATOR),
        _user_keys(user, spec, cluster.authority),
    )
    return walls if spec.suspended else (*walls, *access_manifests(user))


def access_manifests(user: str) -> tuple[Manifest, ...]:
    """Objects that give a user access. They are deleted when the user is suspended or removed."""
    namespace = own_namespace(user)
    account = {"kind": "ServiceAccount", "name": account_name(user), "namespace": namespace}
    login = {"kind": "User", "apiGroup": _RBAC, "name": login_name(user)}
    return (
        _account(user, namespace),
        _object(f"{_RBAC}/v1", "Role", namespace, {"rules": _rules()}),
        _binding(namespace, ROLE, {"kind": "Role", "name": ROLE}, account, login),
        _binding(namespace, BASTION_ACCOUNT, _cluster_role(f"{BASTION_ACCOUNT}-sessions"), _BASTION),
    )


def revoked_manifests(user: str) -> tuple[Manifest, ...]:
    """The objects to delete when the user is suspended or removed: all access, and the console that has it."""
    console = _object("v1", "Pod", own_namespace(user), {}, CONSOLE)
    return (*access_manifests(user), console)


def local_queue(user: str, cluster_queue: str) -> Manifest:
    """The queue of a user, whose servers and jobs count against the quota of a team."""
    spec = {"spec": {"clusterQueue": cluster_queue}}
    return _object(f"{kueue.GROUP}/{kueue.VERSION}", "LocalQueue", own_namespace(user), spec, LOCAL_QUEUE)


def authorized_keys(user: str, spec: DevServerUserSpec, authority: str) -> str:
    """The lines of `authorized_keys` for the servers of a user."""
    if spec.suspended:
        return ""
    signed = [f'cert-authority,principals="{user}" {authority}'] if authority else []
    return "".join(f"{line}\n" for line in (*signed, *spec.keys))


def _user_keys(user: str, spec: DevServerUserSpec, authority: str) -> Manifest:
    body = {"data": {AUTHORIZED_KEYS: authorized_keys(user, spec, authority)}}
    manifest = _object("v1", "ConfigMap", own_namespace(user), body, USER_KEYS)
    manifest["metadata"]["labels"] = {SCRIPTS_LABEL: "true"}
    return manifest


def _object(version: str, kind: str, namespace: str, body: Manifest, name: str = ROLE) -> Manifest:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        **body,
    }


def _namespace(user: str) -> Manifest:
    labels = {
        USER_LABEL: user,
        CREATED_BY_LABEL: USER_CONTROLLER,
        # Not "restricted": users bring images that run as root, and log in to them.
        "pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/audit": "restricted",
    }
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": own_namespace(user), "labels": labels},
    }


def _account(user: str, namespace: str) -> Manifest:
    # No pod needs the user's rights, so none finds them by itself.
    body = {"automountServiceAccountToken": False}
    return _object("v1", "ServiceAccount", namespace, body, account_name(user))


def _is_amount(text: str) -> bool:
    try:
        Quantity.parse(text)
    except UnitError:
        return False
    return _AMOUNT.fullmatch(text) is not None


def _number(amount: str | int) -> int:
    """The API writes a thousand as 1k."""
    return int(Quantity.parse(amount).whole)


def _hard(quota: UserQuota, gpu_kinds: Collection[str]) -> Manifest:
    # A quota holds what it names, and each by itself: what it does not name is without limit.
    kinds = sorted({_GPU, *gpu_kinds})
    return {
        "requests.cpu": str(quota.cpu),
        "requests.memory": str(quota.memory),
        **{f"requests.{kind}": str(quota.gpus) for kind in kinds},
        "requests.storage": str(quota.storage),
        SERVERS_COUNTED: str(quota.servers),
        # Each server has a pod, a Service, a Deployment and a home; the rest is room for a user's own.
        "pods": str(quota.servers * 4 + 10),
        "services": str(quota.servers + 20),
        "persistentvolumeclaims": str(quota.servers * 2 + 10),
        "count/deployments.apps": str(quota.servers + 20),
        "count/replicasets.apps": str(quota.servers * 3 + 40),
        "count/statefulsets.apps": "20",
        "count/configmaps": "100",
        "count/secrets": "100",
        # Nothing of a user is reachable from outside but through the API server and the bastion.
        "services.nodeports": "0",
        "services.loadbalancers": "0",
    }


def _defaults() -> Manifest:
    """Default requests of containers, because a quota refuses containers without requests."""
    return {
        "type": "Container",
        "default": {"memory": "1Gi"},
        "defaultRequest": {"cpu": "100m", "memory": "256Mi"},
    }


def _walls() -> Manifest:
    """In: from the namespace itself, and to SSH from the system's. Out: names, the namespace, and the internet."""
    system = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SYSTEM_NAMESPACE}}}
    names = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    return {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [
            {"from": [{"podSelector": {}}]},
            # A wall knows ports of pods and not of Services: that of our sshd, and that of one which an image brings.
            {"from": [system], "ports": [{"protocol": "TCP", "port": port} for port in (22, SSH_PORT)]},
        ],
        "egress": [
            {"to": [{"podSelector": {}}]},
            {
                "to": [names],
                "ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}],
            },
            {"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": [*_INSIDE]}}]},
        ],
    }


def _console_policies(namespace: str, api: Collection[ApiAddress]) -> tuple[Manifest, ...]:
    """Consoles reach the API server, beside all that other Pods of the user reach."""
    if not api:
        return ()
    egress = [
        {
            "to": [{"ipBlock": {"cidr": f"{one.address}/{128 if ':' in one.address else 32}"}}],
            "ports": [{"protocol": "TCP", "port": one.port}],
        }
        for one in sorted(api)
    ]
    chosen = {"matchExpressions": [{"key": CONSOLE_LABEL, "operator": "Exists"}]}
    spec = {"podSelector": chosen, "policyTypes": ["Egress"], "egress": egress}
    return (_object("networking.k8s.io/v1", "NetworkPolicy", namespace, {"spec": spec}, CONSOLE_POLICY),)


def _rules() -> list[Manifest]:
    """The document's rules for namespaces, and what `devctl` needs. No verb on roles, bindings, accounts or quotas."""
    own = ["pods", "services", "persistentvolumeclaims", "configmaps", "secrets"]
    return [
        {"apiGroups": [GROUP], "resources": ["devservers"], "verbs": [*_ALL]},
        {"apiGroups": [""], "resources": own, "verbs": [*_ALL]},
        {
            "apiGroups": ["apps"],
            "resources": ["deployments", "statefulsets", "replicasets"],
            "verbs": [*_ALL],
        },
        # A stream is a `get` to newer servers and a `create` to older ones.
        {"apiGroups": [""], "resources": ["pods/exec", "pods/portforward"], "verbs": ["get", "create"]},
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": [*_READ]},
        {"apiGroups": [""], "resources": ["resourcequotas", "limitranges"], "verbs": [*_READ]},
        {"apiGroups": ["metrics.k8s.io"], "resources": ["pods"], "verbs": ["get", "list"]},
    ]


def _cluster_role(name: str) -> Manifest:
    return {"kind": "ClusterRole", "name": name}


def _binding(namespace: str, name: str, role: Manifest, *subjects: Manifest) -> Manifest:
    body: Manifest = {"roleRef": {"apiGroup": _RBAC, **role}, "subjects": list(subjects)}
    return _object(f"{_RBAC}/v1", "RoleBinding", namespace, body, name)
