"""Rights of an add-on: cluster roles, and their bindings to one subject. Each comes with the path where it is applied."""

from collections.abc import Sequence
from typing import Final

from neorion.drydock.api import Object

_GROUP: Final = "rbac.authorization.k8s.io"
Rule = dict[str, list[str]]


def user(name: str) -> Object:
    return {"apiGroup": _GROUP, "kind": "User", "name": name}


def cluster_role(name: str, *rules: Rule) -> tuple[str, Object]:
    return _published("clusterroles", "ClusterRole", name, rules=list(rules))


def cluster_binding(name: str, role: str, subject: Object) -> tuple[str, Object]:
    """Gives the subject a cluster role in every namespace."""
    reference = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role}
    return _published(
        "clusterrolebindings", "ClusterRoleBinding", name, roleRef=reference, subjects=[subject]
    )


def granted(name: str, subject: Object, rules: Sequence[Rule]) -> list[tuple[str, Object]]:
    """A cluster role, and its binding of the same name."""
    return [cluster_role(name, *rules), cluster_binding(name, name, subject)]


def _published(plural: str, kind: str, name: str, **fields: object) -> tuple[str, Object]:
    body: Object = {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": {"name": name}, **fields}
    return f"/apis/{_GROUP}/v1/{plural}/{name}", body
