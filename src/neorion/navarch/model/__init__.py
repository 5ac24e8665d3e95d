"""The words of navarch: ids, states and their tables, records, pools as wanted, health, reasons, views.

Pure: records and rules about single records. No clock, no network, no store; deciding over many records is `decide`.
"""

from neorion.navarch.model.health import Ailment, EventKind, Health, HealthEvent, PolicyResult
from neorion.navarch.model.hold import Hold, HoldReason
from neorion.navarch.model.ids import InstallationId, NodeId, RepairId
from neorion.navarch.model.node_index import PoolNodeIndex, is_settled
from neorion.navarch.model.record import FailureStreak, Node, Origin, Placement, PoolState, Purchase, Repair
from neorion.navarch.model.spec import PoolSpec
from neorion.navarch.model.state import NODE, PURCHASE, REPAIR, NodeState, PurchaseState, RepairStep
from neorion.navarch.model.view import Availability, Demand, DesiredSize, Gang, NodeHeartbeat, PoolView

__all__ = [
    "NODE",
    "PURCHASE",
    "REPAIR",
    "Ailment",
    "Availability",
    "Demand",
    "DesiredSize",
    "EventKind",
    "FailureStreak",
    "Gang",
    "Health",
    "HealthEvent",
    "Hold",
    "HoldReason",
    "InstallationId",
    "Node",
    "NodeHeartbeat",
    "NodeId",
    "NodeState",
    "Origin",
    "Placement",
    "PolicyResult",
    "PoolNodeIndex",
    "PoolSpec",
    "PoolState",
    "PoolView",
    "Purchase",
    "PurchaseState",
    "Repair",
    "RepairId",
    "RepairStep",
    "is_settled",
]
