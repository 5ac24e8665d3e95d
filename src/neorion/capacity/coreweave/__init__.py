"""Machines of CoreWeave, as NodePools of a cluster: one pool of one node for each machine.

A pool of its own makes every machine answer to a name that we chose, so that it is bought once and given back alone. Nothing
here knows who buys, and pools that were not made here are never touched.
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
