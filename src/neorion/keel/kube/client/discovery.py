"""Finds the cluster of a program without options: the pod's own cluster, or the one of the kubeconfig."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from neorion.keel.base import NotFound
from neorion.keel.http.proxies import proxy_from
from neorion.keel.kube.client.cluster_config import CaBundle, ClusterConfig, TokenFile
from neorion.keel.kube.client.kubeconfig import kubeconfig_paths, read_kubeconfig

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# Files that the kubelet mounts; a handwritten volume may lack some.
_MOUNTED = ("token", "namespace", "ca.crt")


def cluster_of_pod(environ: Mapping[str, str] = os.environ, account: Path = ACCOUNT) -> ClusterConfig:
    """The cluster of this pod, as its service account. The kubelet renews the token, so the file is read repeatedly."""
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

    The pod's own cluster is reached directly, any other through the proxy of the environment.
    """
    in_pod = environ.get("KUBERNETES_SERVICE_HOST") and (ACCOUNT / "token").exists()
    if kubeconfig is None and not context and not environ.get("KUBECONFIG") and in_pod:
        return cluster_of_pod(environ)
    paths = [kubeconfig] if kubeconfig else kubeconfig_paths(environ)
    cluster = read_kubeconfig(paths).cluster(context)
    return replace(cluster, usual_proxy=proxy_from(environ, cluster.server))
