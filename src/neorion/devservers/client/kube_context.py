"""Resolves the cluster and the namespace of a command, with their defaults."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from neorion.devservers.model.tenancy import own_namespace
from neorion.keel.base import Invalid, is_name
from neorion.keel.kube.client import ClusterConfig, find_cluster

# The namespace of a kubeconfig without a choice. A user's servers belong into the user's own namespace.
_DEFAULT_NAMESPACE = "default"


class KubeContext(Struct, frozen=True):
    """A cluster, and a namespace in it."""

    cluster: ClusterConfig
    namespace: str


def resolve_context(
    namespace: str = "",
    context: str = "",
    kubeconfig: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> KubeContext:
    """The namespace that was given, else the kubeconfig's own, else `dev-<user>`."""
    if namespace and not is_name(namespace):
        raise Invalid(
            "devservers.namespace",
            f'"{namespace}" cannot be a namespace.',
            hint="Use small letters, digits and hyphens.",
        )
    cluster = find_cluster(kubeconfig, context, environ)
    chosen = cluster.namespace if cluster.namespace != _DEFAULT_NAMESPACE else ""
    return KubeContext(cluster, namespace or chosen or own_namespace(user_name(environ)))


def user_name(environ: Mapping[str, str] = os.environ) -> str:
    """Name of the user on this machine."""
    name = environ.get("USER") or environ.get("LOGNAME")
    if name:
        return name
    import getpass  # noqa: PLC0415 -- slow to import and rarely needed

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run as a number without a name.
        return "nobody"
