"""Machines of CoreWeave, as NodePools of a cluster: one pool of one node for each machine.

A pool for each machine gives it a name that we choose, so that it is bought once and deleted alone. Nothing
here depends on a buyer, and pools of other programs are never changed.
"""

from neorion.capacity.coreweave.errors import promised, queued, refusal, verdict
from neorion.capacity.coreweave.nodepools import NODE_POOL, POOL_LABEL, NodePool, reclaim_notice
from neorion.capacity.coreweave.provider import CoreWeaveProvider

__all__ = [
    "NODE_POOL",
    "POOL_LABEL",
    "CoreWeaveProvider",
    "NodePool",
    "promised",
    "queued",
    "reclaim_notice",
    "refusal",
    "verdict",
]
