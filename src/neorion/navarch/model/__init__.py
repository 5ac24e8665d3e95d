"""The words of navarch: ids, states and their tables, records, pools as wanted, health, reasons, views.

Pure: records and rules about single records. No clock, no network, no store; deciding over many records is `decide`.
"""

from neorion.navarch.model.health import Ailment, EventKind, Health, HealthEvent, Verdict
from neorion.navarch.model.hold import Hold, HoldCode
from neorion.navarch.model.ids import InstallationId, NodeId, RepairId
from neorion.navarch.model.node_index import Roll, is_settled
from neorion.navarch.model.record import Node, Origin, Place, PoolState, Purchase, Repair, Trouble
from neorion.navarch.model.spec import PoolSpec
from neorion.navarch.model.state import NODE, PURCHASE, REPAIR, NodeState, PurchaseState, RepairStep
from neorion.navarch.model.view import Demand, Gang, PoolView, Pulse, Stock, Wish

__all__ = [
    "NODE",
    "PURCHASE",
    "REPAIR",
    "Ailment",
    "Demand",
    "EventKind",
    "Gang",
    "Health",
    "HealthEvent",
    "Hold",
    "HoldCode",
    "InstallationId",
    "Node",
    "NodeId",
    "NodeState",
    "Origin",
    "Place",
    "PoolSpec",
    "PoolState",
    "PoolView",
    "Pulse",
    "Purchase",
    "PurchaseState",
    "Repair",
    "RepairId",
    "RepairStep",
    "Roll",
    "Stock",
    "Trouble",
    "Verdict",
    "Wish",
    "is_settled",
]
