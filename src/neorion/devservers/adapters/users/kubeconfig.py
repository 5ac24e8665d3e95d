"""The way in for a user: a kubeconfig that reaches their namespace."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neorion.devservers.model.tenancy import account_name, login_name, own_namespace
from neorion.keel.kube import ServiceAccountToken
from neorion.keel.kube.client import ClusterConfig

# One that `aws eks get-token` and the plugins of OIDC understand.
_EXEC_VERSION = "client.authentication.k8s.io/v1beta1"

# As the document has it; who merges kubeconfigs may rename it.
_CLUSTER = "default-cluster"


def kubeconfig(user: str, cluster: ClusterConfig, token: ServiceAccountToken | Path) -> dict[str, Any]:
    """Builds a kubeconfig with the token itself, or with a file that contains a token and is renewed."""
    known = {"token": token.text} if isinstance(token, ServiceAccountToken) else {"tokenFile": str(token)}
    return _config(user, cluster, account_name(user), known)


def login_kubeconfig(user: str, cluster: ClusterConfig, command: Sequence[str]) -> dict[str, Any]:
    """With a command that logs in, such as `aws eks get-token`. It holds no secret."""
    program, *arguments = command
    plugin = {
        "apiVersion": _EXEC_VERSION,
        "command": program,
        "args": arguments,
        "interactiveMode": "IfAvailable",
    }
    return _config(user, cluster, login_name(user), {"exec": plugin})


def _config(user: str, cluster: ClusterConfig, name: str, known: Mapping[str, Any]) -> dict[str, Any]:
    namespace = own_namespace(user)
    context = {"cluster": _CLUSTER, "namespace": namespace, "user": name}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _CLUSTER, "cluster": _where(cluster)}],
        "users": [{"name": name, "user": dict(known)}],
        "contexts": [{"name": namespace, "context": context}],
        "current-context": namespace,
    }


def _where(cluster: ClusterConfig) -> dict[str, Any]:
    """The cluster's address and trust as this machine has them, without credentials."""
    trust = cluster.trust
    given = {
        "server": cluster.server,
        "certificate-authority-data": b64encode(trust.ca.encode()).decode(),
        "tls-server-name": trust.server_name,
        "insecure-skip-tls-verify": trust.insecure,
        "proxy-url": cluster.proxy,
    }
    return {word: value for word, value in given.items() if value}
