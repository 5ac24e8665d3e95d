"""The control plane of a cluster: who takes part in it, and the command lines of its parts.

Starting and waiting is `Cluster`'s; nodes are not part of it.
"""

from neorion.drydock.control.certificates import make_identities
from neorion.drydock.control.components import (
    EMPTY_LARGE_LOGS,
    FEATURES,
    PARTS,
    PROGRAMS,
    api_server,
    controller_manager,
    etcd,
    log_keeper,
    scheduler,
)

__all__ = [
    "EMPTY_LARGE_LOGS",
    "FEATURES",
    "PARTS",
    "PROGRAMS",
    "api_server",
    "controller_manager",
    "etcd",
    "log_keeper",
    "make_identities",
    "scheduler",
]
