"""How many nodes may be out of service at once."""

from collections.abc import Sequence

from neorion.keel.base import Instant
from neorion.navarch.decide.window import is_open
from neorion.navarch.model import Hold, HoldCode, Node, PoolView, Repair, RepairStep
from neorion.navarch.model.spec import Budget


def begun(repair: Repair) -> bool:
    """Takes a node out of service now."""
    return not repair.step.over and repair.step is not RepairStep.WAITING


def admit(repair: Repair, node: Node, view: PoolView, at_work: Sequence[Repair], now: Instant) -> Hold | None:
    """Whether the node may be taken out of service beside those that are; every budget must agree."""
    # Nodes that stand beside those they replace make the pool no larger.
    size = max(1, min(view.spec.scaling.most, sum(each.state.serving for each in view.nodes)))
    for budget in view.spec.health.budgets:
        hold = _check(budget, repair, node, _Scene(view, at_work, size, now))
        if hold is not None:
            return hold
    return None


class _Scene:
    """What all budgets of one decision look at."""

    def __init__(self, view: PoolView, at_work: Sequence[Repair], size: int, now: Instant) -> None:
        self.view = view
        self.at_work = at_work
        self.size = size
        self.now = now
        self.zones = {node.id: node.place.zone for node in view.nodes}


def _check(budget: Budget, repair: Repair, node: Node, scene: _Scene) -> Hold | None:
    if not _concerns(budget, repair.signature, node.place.zone):
        return None
    if budget.windows and not any(is_open(window, scene.now) for window in budget.windows):
        return None
    zone = node.place.zone if budget.each_zone else None
    if budget.per is not None:
        counted = [
            one
            for one in scene.view.repairs
            if "cordoning" in one.times and scene.now.since(one.times["cordoning"]) < budget.per
        ]
        code, what = HoldCode.BUDGET_RATE, f"{budget.most} in {budget.per}"
    else:
        counted = list(scene.at_work)
        code, what = HoldCode.BUDGET, f"budget {budget.most}"
    have = sum(
        one.id != repair.id
        and _concerns(budget, one.signature, scene.zones.get(one.node, ""))
        and (zone is None or scene.zones.get(one.node) == zone)
        for one in counted
    )
    most = budget.most.of(scene.size)
    if have < most:
        return None
    where = f" in {node.place.zone}" if budget.each_zone else ""
    return Hold(code, node.id, have=have, most=most, detail=f"{what}{where}")


def _concerns(budget: Budget, signature: str, zone: str) -> bool:
    return (not budget.reasons or signature in budget.reasons) and (not budget.zones or zone in budget.zones)
