"""Changes of a cluster to this machine, and their removal: processes, locks, and the undo log.

Independent of Kubernetes.
"""

from neorion.drydock.host.locks import locked
from neorion.drydock.host.processes import (
    Component,
    RunningComponent,
    alive,
    end,
    marked_clusters,
    running,
    start,
)
from neorion.drydock.host.undo import UNDO
from neorion.drydock.host.undo_log import HostChange, Undo, UndoLog

__all__ = [
    "UNDO",
    "Component",
    "HostChange",
    "RunningComponent",
    "Undo",
    "UndoLog",
    "alive",
    "end",
    "locked",
    "marked_clusters",
    "running",
    "start",
]
