"""What a cluster does to this machine, and how all of it is taken back: processes, locks, and the ledger of effects.

Knows nothing of Kubernetes.
"""

from neorion.drydock.host.locks import locked
from neorion.drydock.host.processes import Part, Running, alive, end, marked_clusters, running, start
from neorion.drydock.host.undo import UNDO
from neorion.drydock.host.undo_log import Effect, Ledger, Undo

__all__ = [
    "UNDO",
    "Effect",
    "Ledger",
    "Part",
    "Running",
    "Undo",
    "alive",
    "end",
    "locked",
    "marked_clusters",
    "running",
    "start",
]
