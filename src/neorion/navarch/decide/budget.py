"""Budgets: limits on the nodes that are out of service at once."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from neorion.keel.base import Instant
from neorion.navarch.decide.actions import NOBODY
from neorion.navarch.decide.window import is_open
from neorion.navarch.model import Hold, HoldReason, Node, PoolView, Repair, RepairStep
from neorion.navarch.model.spec import Budget


def begun(repair: Repair) -> bool:
    """Takes a node out of service now."""
    return not repair.step.over and repair.step is not RepairStep.WAITING


def admit(repair: Repair, node: Node, view: PoolView, at_work: Sequence[Repair], now: Instant) -> Hold | None:
    """Returns the first budget's hold against taking the node out of service, or None if all budgets allow it."""
    scene = _BudgetContext(view, at_work, now)
    for budget in view.spec.health.budgets:
        hold = _check(budget, repair, node, scene)
        if hold is not None:
            return hold
    return None


class _BudgetContext:
    """Facts that all budgets of one decision share."""

    def __init__(self, view: PoolView, at_work: Sequence[Repair], now: Instant) -> None:
        self.view = view
        self.at_work = at_work
        # Nodes that stand beside those they replace make the pool no larger.
        self.size = max(1, min(view.spec.scaling.most, view.serving))
        self.now = now

    def zone(self, repair: Repair) -> str:
        node = self.view.node(repair.node)
        return node.place.zone if node is not None else ""


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """Use of a budget. For one that counts each zone it is the fullest zone's."""

    name: str
    used: int
    most: int


def budgets_used(view: PoolView, now: Instant) -> list[BudgetUse]:
    scene = _BudgetContext(view, [one for one in view.open_repairs if begun(one)], now)
    found: list[BudgetUse] = []
    for budget in view.spec.health.budgets:
        counted = [
            one for one in _counted(budget, scene) if _concerns(budget, one.signature, scene.zone(one))
        ]
        zones = Counter(scene.zone(one) for one in counted)
        used = max(zones.values(), default=0) if budget.each_zone else len(counted)
        found.append(BudgetUse(_name(budget), used, budget.most.of(scene.size)))
    return found


def _check(budget: Budget, repair: Repair, node: Node, scene: _BudgetContext) -> Hold | None:
    if not _concerns(budget, repair.signature, node.place.zone):
        return None
    if budget.windows and not any(is_open(window, scene.now) for window in budget.windows):
        return None
    zone = node.place.zone if budget.each_zone else None
    code = HoldReason.BUDGET if budget.per is None else HoldReason.BUDGET_RATE
    have = sum(
        one.id != repair.id
        and _concerns(budget, one.signature, scene.zone(one))
        and (zone is None or scene.zone(one) == zone)
        for one in _counted(budget, scene)
    )
    most = budget.most.of(scene.size)
    if have < most:
        return None
    where = f" in {node.place.zone}" if budget.each_zone else ""
    return Hold(code, node.id, have=have, most=most, detail=f"{_name(budget)}{where}")


def _counted(budget: Budget, scene: _BudgetContext) -> Sequence[Repair]:
    """Those that are out of service now, or that were begun within the budget's time."""
    if budget.per is None:
        return scene.at_work
    lately = [
        one
        for one in scene.view.repairs
        if "cordoning" in one.times and scene.now.since(one.times["cordoning"]) < budget.per
    ]
    # Those that this decision lets begin have no time yet; what a failed treatment left down begins nothing.
    return lately + [one for one in scene.at_work if one.id != NOBODY and not begun(one)]


def _name(budget: Budget) -> str:
    return f"budget {budget.most}" if budget.per is None else f"{budget.most} in {budget.per}"


def _concerns(budget: Budget, signature: str, zone: str) -> bool:
    return (not budget.reasons or signature in budget.reasons) and (not budget.zones or zone in budget.zones)
