"""The cluster file: its schema, what may contradict what in it, and the pure values it turns into.

Reads and checks, and starts nothing: who opens stores, ports and platforms takes the values from here.
"""

from neorion.iris.adapters.cluster_file.convert import (
    behaviours,
    caps,
    container_flags,
    kubernetes_settings,
    runtime,
    scale_groups,
)
from neorion.iris.adapters.cluster_file.file import ClusterFile
from neorion.iris.adapters.cluster_file.sections import RuntimeName
from neorion.iris.adapters.cluster_file.unsupported import check_served

__all__ = [
    "ClusterFile",
    "RuntimeName",
    "behaviours",
    "caps",
    "check_served",
    "container_flags",
    "kubernetes_settings",
    "runtime",
    "scale_groups",
]
