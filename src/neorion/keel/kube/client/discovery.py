"""Which cluster a program means when it says nothing: its own, inside a pod; the kubeconfig's, elsewhere."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from neorion.keel.base import NotFound
from neorion.keel.http.proxies import proxy_from
from neorion.keel.kube.client.cluster_config import CaBundle, ClusterConfig, TokenFile
from neorion.keel.kube.client.kubeconfig import kubeconfig_paths, read_kubeconfig

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# What the kubelet mounts there; a volume that somebody wrote by hand may have less.
_MOUNTED = ("token", "namespace", "ca.crt")


def cluster_of_pod(environ: Mapping[str, str] = os.environ, account: Path = ACCOUNT) -> ClusterConfig:
    """The cluster this pod runs in, as its service account. The kubelet renews the token; it is read again and again."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not all((account / name).exists() for name in _MOUNTED):
        raise NotFound(
            "kube.no_pod",
            "This program does not run in a pod with a service account.",
            hint="Use a kubeconfig, or set automountServiceAccountToken.",
        )
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    namespace = (account / "namespace").read_text(encoding="utf-8").strip()
    authority = account / "ca.crt"
    trust = CaBundle(authority.read_text(encoding="utf-8"), file=authority)
    return ClusterConfig(server, trust, source=TokenFile(account / "token"), namespace=namespace)


def find_cluster(
    kubeconfig: Path | None = None, context: str = "", environ: Mapping[str, str] = os.environ
) -> ClusterConfig:
    """The given file, else KUBECONFIG, else the pod's own cluster, else ~/.kube/config.

    A pod's own is reached directly, any other through the proxy that the environment names for it.
    """
    in_pod = environ.get("KUBERNETES_SERVICE_HOST") and (ACCOUNT / "token").exists()
    if kubeconfig is None and not context and not environ.get("KUBECONFIG") and in_pod:
        return cluster_of_pod(environ)
    paths = [kubeconfig] if kubeconfig else kubeconfig_paths(environ)
    cluster = read_kubeconfig(paths).cluster(context)
    return replace(cluster, usual_proxy=proxy_from(environ, cluster.server))
