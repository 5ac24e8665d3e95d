"""CoreWeave, played on a cluster of this machine: the NodePool API, and nodes that arrive, go and fail as asked.

Knows no system that uses NodePools, and buys nothing.
"""

from neorion.drydock.coreweave.crd import GROUP, VERSION, definition
from neorion.drydock.coreweave.decide import Fault, NodePoolPlan, PoolCondition, PoolNode, decide, fault_of
from neorion.drydock.coreweave.deploy import resume_coreweave, start_coreweave
from neorion.drydock.coreweave.nodepool_types import (
    FAULT,
    MACHINES,
    NODE_POOL,
    NOTICE,
    OLD_NAMES,
    POOL,
    NodeBacking,
    NodePool,
    PoolSpec,
    PoolStatus,
)

__all__ = [
    "FAULT",
    "GROUP",
    "MACHINES",
    "NODE_POOL",
    "NOTICE",
    "OLD_NAMES",
    "POOL",
    "VERSION",
    "Fault",
    "NodeBacking",
    "NodePool",
    "NodePoolPlan",
    "PoolCondition",
    "PoolNode",
    "PoolSpec",
    "PoolStatus",
    "decide",
    "definition",
    "fault_of",
    "resume_coreweave",
    "start_coreweave",
]
