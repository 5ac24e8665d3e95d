"""The Kubernetes client: implements `KubeApi` over HTTP, with kubeconfigs and credentials.

Contains no caches and no loops. Streams into pods are in `streams`.
"""

from neorion.keel.kube.client.api import Client
from neorion.keel.kube.client.cluster_config import (
    CaBundle,
    ClientCertificate,
    ClusterConfig,
    ExecPlugin,
    Impersonation,
    StaticToken,
    TokenFile,
)
from neorion.keel.kube.client.connect import connect
from neorion.keel.kube.client.discovery import cluster_of_pod, find_cluster
from neorion.keel.kube.client.kubeconfig import Kubeconfig, kubeconfig_paths, read_kubeconfig

__all__ = [
    "CaBundle",
    "Client",
    "ClientCertificate",
    "ClusterConfig",
    "ExecPlugin",
    "Impersonation",
    "Kubeconfig",
    "StaticToken",
    "TokenFile",
    "cluster_of_pod",
    "connect",
    "find_cluster",
    "kubeconfig_paths",
    "read_kubeconfig",
]
