"""Slices of worker Pods on a Kubernetes cluster: on nodes that are there, or on NodePools bought for them.

A slice is a Secret that records it, its NodePool where the group has one, and one worker Pod for each machine. All three
carry the labels `iris-managed`, `iris-scale-group` and `iris-slice-id`; what carries other labels is never touched.
"""

from neorion.iris.adapters.platforms.kubernetes.errors import QuotaExhaustedError
from neorion.iris.adapters.platforms.kubernetes.platform import KubernetesPlatform
from neorion.iris.adapters.platforms.kubernetes.preflight import check_cluster
from neorion.iris.adapters.platforms.kubernetes.settings import (
    GroupTemplate,
    KubernetesSettings,
    PoolTemplate,
)

__all__ = [
    "GroupTemplate",
    "KubernetesPlatform",
    "KubernetesSettings",
    "PoolTemplate",
    "QuotaExhaustedError",
    "check_cluster",
]
