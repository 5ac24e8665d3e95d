"""What a user is given: a namespace that is theirs, walls around it, and the rights inside. Pure: a name in, manifests out."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from neorion.devservers.decide import SSH_PORT
from neorion.devservers.model import GROUP
from neorion.devservers.model.users import (
    CREATED_BY_LABEL,
    ROLE,
    USER_LABEL,
    account_name,
    own_namespace,
)
from neorion.keel.base import Invalid, Quantity, UnitError

Manifest = dict[str, Any]

SERVERS_COUNTED: Final = f"count/devservers.{GROUP}"
_GPU: Final = "nvidia.com/gpu"
# As the API server reads it, which knows no bytes by name: 12GB is refused there.
_AMOUNT: Final = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|[KMGTP]i|[MGTP]|[eE][0-9]+)?")
_RBAC: Final = "rbac.authorization.k8s.io"
_SYSTEM: Final = "devservers-system"
_OPERATOR: Final = "devservers-operator"
_ALL: Final = ("get", "list", "watch", "create", "update", "patch", "delete")
_READ: Final = ("get", "list", "watch")
# The addresses of nodes, pods and services, and of the clouds' metadata: nothing there is for a dev server to reach.
_INSIDE: Final = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16")


@dataclass(frozen=True, slots=True)
class Allowance:
    """The most that a user may have: servers, and the sum of what all that run ask for; of GPUs, so many of each kind."""

    servers: int = 10
    cpu: str = "64"
    memory: str = "256Gi"
    gpus: int = 8
    storage: str = "2Ti"

    def __post_init__(self) -> None:
        """Before anything is made: a namespace without its quota would be one without limits."""
        for name in ("servers", "cpu", "memory", "gpus", "storage"):
            amount = str(getattr(self, name))
            if not _is_amount(amount):
                raise Invalid(
                    "devservers.allowance",
                    f'--{name} "{amount[:40]}" is no amount.',
                    hint="Write amounts as Kubernetes does, such as 64 or 256Gi.",
                )

    @classmethod
    def of(cls, hard: Mapping[str, str]) -> "Allowance":
        """What the quota of a user says; what somebody took out of it is as for a new one."""
        new = cls()
        return cls(
            servers=_number(hard.get(SERVERS_COUNTED, new.servers)),
            cpu=hard.get("requests.cpu", new.cpu),
            memory=hard.get("requests.memory", new.memory),
            gpus=_number(hard.get(f"requests.{_GPU}", new.gpus)),
            storage=hard.get("requests.storage", new.storage),
        )


def kit(
    user: str, allowance: Allowance, created_by: str, gpu_kinds: Collection[str] = ()
) -> tuple[Manifest, ...]:
    """Everything, walls first: no account before what holds it. `gpu_kinds` are the cluster's, beside NVIDIA's whole ones."""
    namespace = own_namespace(user)
    return (
        _namespace(user, created_by),
        _object("v1", "ResourceQuota", namespace, {"spec": {"hard": _hard(allowance, gpu_kinds)}}),
        _object("v1", "LimitRange", namespace, {"spec": {"limits": [_defaults()]}}),
        _object("networking.k8s.io/v1", "NetworkPolicy", namespace, {"spec": _walls()}),
        _account(user, namespace),
        _object(f"{_RBAC}/v1", "Role", namespace, {"rules": _rules()}),
        _binding(namespace, ROLE, {"kind": "Role", "name": ROLE}, account_name(user), namespace),
        _binding(
            namespace,
            _OPERATOR,
            {"kind": "ClusterRole", "name": f"{_OPERATOR}-writes"},
            _OPERATOR,
            _SYSTEM,
        ),
    )


def _object(version: str, kind: str, namespace: str, body: Manifest, name: str = ROLE) -> Manifest:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        **body,
    }


def _namespace(user: str, created_by: str) -> Manifest:
    labels = {
        USER_LABEL: user,
        CREATED_BY_LABEL: created_by,
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


def _hard(allowance: Allowance, gpu_kinds: Collection[str]) -> Manifest:
    # A quota holds what it names, and each by itself: what it does not name is without limit.
    kinds = sorted({_GPU, *gpu_kinds})
    return {
        "requests.cpu": allowance.cpu,
        "requests.memory": allowance.memory,
        **{f"requests.{kind}": str(allowance.gpus) for kind in kinds},
        "requests.storage": allowance.storage,
        SERVERS_COUNTED: str(allowance.servers),
        # Each server has a pod, a Service, a Deployment and a home; the rest is room for a user's own.
        "pods": str(allowance.servers * 4 + 10),
        "services": str(allowance.servers + 20),
        "persistentvolumeclaims": str(allowance.servers * 2 + 10),
        "count/deployments.apps": str(allowance.servers + 20),
        "count/replicasets.apps": str(allowance.servers * 3 + 40),
        "count/statefulsets.apps": "20",
        "count/configmaps": "100",
        "count/secrets": "100",
        # Nothing of a user is reachable from outside but through the API server and the bastion.
        "services.nodeports": "0",
        "services.loadbalancers": "0",
    }


def _defaults() -> Manifest:
    """For containers that name none: a quota refuses those that ask for nothing."""
    return {
        "type": "Container",
        "default": {"memory": "1Gi"},
        "defaultRequest": {"cpu": "100m", "memory": "256Mi"},
    }


def _walls() -> Manifest:
    """In: from the namespace itself, and to SSH from the system's. Out: names, the namespace, and the internet."""
    system = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": _SYSTEM}}}
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


def _binding(namespace: str, name: str, role: Manifest, account: str, home: str) -> Manifest:
    body: Manifest = {
        "roleRef": {"apiGroup": _RBAC, **role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": home}],
    }
    return _object(f"{_RBAC}/v1", "RoleBinding", namespace, body, name)
