"""The rules of navarch: what ails a node, what is done about it and when, how large a pool is and where it buys.

Pure: views in, plans and reasons out. Nothing here reads a clock, draws by chance, or carries anything out.
"""

from neorion.navarch.decide.actions import (
    NOBODY,
    Action,
    AdvanceRepair,
    AssignReplacement,
    ClearAilment,
    FailNode,
    MoveNode,
    OpenRepair,
    PoolPlan,
    ProvisionNode,
    ReportSilence,
    RetireNode,
    SetDesiredSize,
)
from neorion.navarch.decide.budget import BudgetUse, budgets_used
from neorion.navarch.decide.explain import explain_node, explain_pool
from neorion.navarch.decide.health import diagnose, recovered
from neorion.navarch.decide.incidents import Incident, incidents
from neorion.navarch.decide.invariants import violations
from neorion.navarch.decide.offering import placements
from neorion.navarch.decide.plan import plan
from neorion.navarch.decide.repair import machine_gone

__all__ = [
    "NOBODY",
    "Action",
    "AdvanceRepair",
    "AssignReplacement",
    "BudgetUse",
    "ClearAilment",
    "FailNode",
    "Incident",
    "MoveNode",
    "OpenRepair",
    "PoolPlan",
    "ProvisionNode",
    "ReportSilence",
    "RetireNode",
    "SetDesiredSize",
    "budgets_used",
    "diagnose",
    "explain_node",
    "explain_pool",
    "incidents",
    "machine_gone",
    "placements",
    "plan",
    "recovered",
    "violations",
]
