"""Repairs: which nodes need one, which may begin, and the next step of each that has."""

from collections.abc import Collection, Iterator, Sequence

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Instant
from neorion.navarch.decide.actions import (
    NOBODY,
    Action,
    AdvanceRepair,
    AssignReplacement,
    MoveNode,
    OpenRepair,
)
from neorion.navarch.decide.budget import admit, begun
from neorion.navarch.decide.incidents import common_causes
from neorion.navarch.decide.offering import backoff_until, placements
from neorion.navarch.decide.repair_ladder import next_remedy, resting
from neorion.navarch.decide.silence import mass_silence, silence_hold
from neorion.navarch.model import (
    EventKind,
    Health,
    Hold,
    HoldReason,
    Node,
    NodeId,
    NodeState,
    Origin,
    Placement,
    PoolView,
    Repair,
    RepairStep,
)

_OPEN = (NodeState.ACTIVE, NodeState.UNCORDONING, NodeState.SPARE)
_REPAIRABLE = (*_OPEN, NodeState.CORDONED, NodeState.DRAINED)


def open_needed(view: PoolView, now: Instant) -> Iterator[OpenRepair]:
    """Opens repairs of unhealthy nodes that have none."""
    under_repair = {repair.node for repair in view.open_repairs}
    for node in view.unsettled:
        ailment = node.ailment
        if ailment is None or ailment.result is not Health.UNHEALTHY or node.id in under_repair:
            continue
        if node.retiring or node.state not in _REPAIRABLE:
            continue
        remedy = next_remedy(node, ailment, view.repairs, view.spec.health.ladder, now)
        if remedy is not Remedy.NOTHING:
            yield OpenRepair(node.id, remedy, ailment.signature, ailment.sentence)


def admit_waiting(view: PoolView, now: Instant) -> Iterator[Action | Hold]:
    """Waiting repairs that may begin now, and why the others may not. Those that people asked for go first."""
    waiting = [repair for repair in view.open_repairs if repair.step is RepairStep.WAITING]
    waiting.sort(key=lambda repair: (not repair.approved, repair.opened.ns, repair.id))
    at_work = [repair for repair in view.open_repairs if begun(repair)]
    closed = _closed_nodes(view, at_work, now)
    causes = common_causes(view.unsettled, view.serving, view.spec.health.cause, now)
    together = mass_silence(view)
    for repair in waiting:
        node = view.node(repair.node)
        if node is None or _pointless(repair, node):
            yield AdvanceRepair(repair.id, RepairStep.CANCELLED, "it is not needed any more")
            continue
        if _outdone(repair, node, view, now):
            yield AdvanceRepair(repair.id, RepairStep.CANCELLED, "it needs more by now")
            continue
        hold = (
            _hold(repair, node, view, now)
            or silence_hold(repair, node, view, together)
            or _cause(repair, causes)
            or admit(repair, node, view, at_work if node.id in closed else [*at_work, *closed.values()], now)
        )
        if hold is not None:
            yield hold
            continue
        closed.pop(node.id, None)
        at_work.append(repair)
        yield AdvanceRepair(repair.id, RepairStep.CORDONING, repair.why)
        if node.state in _OPEN:
            yield MoveNode(node.id, NodeState.CORDONED, repair.why)


def _closed_nodes(view: PoolView, at_work: Sequence[Repair], now: Instant) -> dict[NodeId, Repair]:
    """Nodes that take no new work although no repair is under way; each counts against the budgets like a repair.

    A treatment may have failed, or the scheduler has not been seen to place work on the node again.
    """
    repaired = {repair.node for repair in at_work}
    return {
        node.id: _as_repair(node, now)
        for node in view.unsettled
        if _is_closed(node) and not node.held and not node.retiring and node.id not in repaired
    }


def _is_closed(node: Node) -> bool:
    if node.state in (NodeState.CORDONED, NodeState.DRAINED):
        unhealthy = node.ailment is not None and node.ailment.result is Health.UNHEALTHY
        return unhealthy or node.served is not None
    return node.state is NodeState.UNCORDONING and node.served is not None


def _as_repair(node: Node, now: Instant) -> Repair:
    remedy, signature, why = Remedy.NOTHING, "", node.why
    if node.ailment is not None:
        remedy, signature, why = node.ailment.remedy, node.ailment.signature, node.ailment.sentence
    return Repair(NOBODY, node.id, node.pool, remedy, signature, why, now, now)


def advance_open(view: PoolView, now: Instant) -> Iterator[Action]:
    """The next step of every repair that has begun, where what it waits for has come."""
    promised: set[NodeId] = {repair.successor for repair in view.open_repairs if repair.successor}
    for repair in view.open_repairs:
        node = view.node(repair.node)
        if repair.step is RepairStep.WAITING:
            continue
        if node is None or node.state is NodeState.TERMINATED:
            yield from machine_gone(repair)
        elif _recovered_from_silence(repair, node):
            yield AdvanceRepair(repair.id, RepairStep.CANCELLED, "it is heard again")
            if node.state is NodeState.DRAINING:
                yield MoveNode(node.id, NodeState.CORDONED, "it is heard again")
        else:
            yield from _step(repair, node, view, promised, now)


def awaiting_replacement(view: PoolView, decided: Collection[Action]) -> list[Repair]:
    """Those for whom a successor is to be bought, when what `advance_open` decided is done."""
    steps = {one.repair: one.to for one in decided if isinstance(one, AdvanceRepair)}
    named = {one.repair: one.node for one in decided if isinstance(one, AssignReplacement)}
    return [
        repair
        for repair in view.open_repairs
        if steps.get(repair.id, repair.step) is RepairStep.BUYING
        and not named.get(repair.id, repair.successor)
    ]


def _hold(repair: Repair, node: Node, view: PoolView, now: Instant) -> Hold | None:
    """Hold on the start of a repair, for reasons other than budgets and common causes."""
    if view.state.paused:
        return Hold(HoldReason.PAUSED, node.id, detail=view.state.paused, pool=view.spec.name)
    if repair.approved:
        return None
    if node.held:
        return Hold(HoldReason.HELD_BY_OPERATOR, node.id, detail=node.why)
    return _consent(repair, node, view) or resting(
        node, repair.remedy, view.repairs, view.spec.health.ladder, now
    )


def _consent(repair: Repair, node: Node, view: PoolView) -> Hold | None:
    """Hold on a repair that needs a person's approval."""
    rules = view.spec.health
    if repair.remedy.costs_the_node and not rules.auto_replace:
        return Hold(HoldReason.AUTO_REPLACE_OFF, node.id)
    if repair.remedy in rules.approval:
        return Hold(HoldReason.APPROVAL, node.id, detail=f"{repair.remedy.value} for {repair.why}")
    if repair.remedy.costs_the_node and node.origin is Origin.JOINED:
        return Hold(HoldReason.APPROVAL, node.id, detail="navarch did not buy this machine")
    return None


def _cause(repair: Repair, causes: dict[str, Hold]) -> Hold | None:
    found = causes.get(repair.signature)
    if found is None or repair.approved:
        return None
    return Hold(found.code, repair.node, found.have, found.most, found.detail, found.until)


def _pointless(repair: Repair, node: Node) -> bool:
    if node.state.leaving or node.retiring:
        return True
    return not repair.by and (node.ailment is None or node.ailment.result is not Health.UNHEALTHY)


def _outdone(repair: Repair, node: Node, view: PoolView, now: Instant) -> bool:
    """Something worse befell the node while it waited: what it waits for would not help."""
    if repair.by or node.ailment is None:
        return False
    remedy = next_remedy(node, node.ailment, view.repairs, view.spec.health.ladder, now)
    return remedy.rung > repair.remedy.rung


def _recovered_from_silence(repair: Repair, node: Node) -> bool:
    """Silence is cured by a word, as long as nothing was done about it yet.

    Of what a machine has that is not so: heat, for one, goes away with the work that brings it back.
    """
    early = repair.step in (RepairStep.CORDONING, RepairStep.BUYING, RepairStep.DRAINING)
    return early and not repair.by and repair.signature == EventKind.SILENCE and node.ailment is None


def machine_gone(repair: Repair) -> Iterator[AdvanceRepair]:
    """The end of an open repair whose machine is gone."""
    if repair.step in (RepairStep.WAITING, RepairStep.CORDONING):
        yield AdvanceRepair(repair.id, RepairStep.CANCELLED, "its machine is gone")
    elif repair.step is RepairStep.VERIFYING:
        yield AdvanceRepair(repair.id, RepairStep.FAILED, "its machine is gone")
    else:
        yield AdvanceRepair(repair.id, RepairStep.DONE, "its machine is gone")


def _step(
    repair: Repair, node: Node, view: PoolView, promised: set[NodeId], now: Instant
) -> Iterator[Action]:
    match repair.step:
        case RepairStep.CORDONING:
            yield from _after_cordon(repair, node, view, promised, now)
        case RepairStep.BUYING:
            yield from _find_successor(repair, node, view, promised, now)
        case RepairStep.DRAINING if node.state is NodeState.DRAINED:
            if repair.remedy.costs_the_node:
                yield AdvanceRepair(repair.id, RepairStep.TERMINATING, "nothing runs on it")
                yield MoveNode(node.id, NodeState.TERMINATING, repair.why)
            elif repair.remedy is Remedy.RESTART_WORKLOAD:
                yield AdvanceRepair(repair.id, RepairStep.VERIFYING, "its work has left and starts again")
                yield MoveNode(node.id, NodeState.VERIFYING, f"after {repair.remedy.value}")
            else:
                yield AdvanceRepair(repair.id, RepairStep.TREATING, "nothing runs on it")
        case RepairStep.TREATING:
            yield from _treat(repair, node, view, now)
        case RepairStep.VERIFYING:
            yield from _verify(repair, node, view, now)
        case _:
            pass


def _after_cordon(
    repair: Repair, node: Node, view: PoolView, promised: set[NodeId], now: Instant
) -> Iterator[Action]:
    heartbeat = view.heartbeat(node.id)
    if not heartbeat.marked:
        return
    if node.state is NodeState.DRAINED:
        # An operator emptied it before: straight on.
        yield AdvanceRepair(repair.id, RepairStep.DRAINING, "nothing runs on it")
        return
    if repair.remedy.costs_the_node and not node.spare and can_surge(view, repair, now):
        yield AdvanceRepair(repair.id, RepairStep.BUYING, "its successor comes first")
        yield from _find_successor(repair, node, view, promised, now)
        return
    why = (
        repair.why if node.spare or not repair.remedy.costs_the_node else "no room for a successor beside it"
    )
    yield AdvanceRepair(repair.id, RepairStep.DRAINING, why, swap=False)
    yield MoveNode(node.id, NodeState.DRAINING, why)


def can_surge(view: PoolView, repair: Repair, now: Instant) -> bool:
    """Reports whether a replacement may exist beside the old node.

    It may if there is a spare, or if the pool may surge within its spending and a cloud has quota.
    """
    if any(ready_spare(node) for node in view.unsettled):
        return True
    scaling, old = view.spec.scaling, view.node(repair.node)
    alive = view.settled + sum(not node.spare for node in view.paid)
    # Only those ahead of it count: if each counted all, none of them would find room.
    beside = sum(
        one.swap
        and one.step in (RepairStep.CORDONING, RepairStep.BUYING)
        and one.remedy.costs_the_node
        and view.successor(one) is None
        and (one.opened.ns, one.id) < (repair.opened.ns, repair.id)
        for one in view.open_repairs
    )
    # In the place of what others bought the pool gets one of its own, which stays.
    theirs = old is not None and old.origin is Origin.JOINED
    if alive + beside + 1 > scaling.most + (0 if theirs else scaling.surge.of(scaling.most)):
        return False
    most = view.spec.spending.total
    if most and old is not None and view.dollars + (beside + 1) * old.place.price > most:
        return False
    return not all(_over_quota(place, view, now) for offer in view.spec.offers for place in placements(offer))


def _over_quota(place: Placement, view: PoolView, now: Instant) -> bool:
    """Reports whether a placement lacked quota lately. After the back-off it is tried again, because quota may have grown."""
    troubles = (view.troubles.get(scope) for scope in place.scopes)
    return any(one is not None and one.kind == "quota" and now < backoff_until(one) for one in troubles)


def ready_spare(node: Node) -> bool:
    return node.state is NodeState.SPARE and not node.held and node.ailment is None


def _find_successor(
    repair: Repair, node: Node, view: PoolView, promised: set[NodeId], now: Instant
) -> Iterator[Action]:
    """A spare at once, if there is one; otherwise `size` buys. Once the successor serves, the old node is drained."""
    successor = view.successor(repair)
    if successor is not None:
        if successor.state is NodeState.ACTIVE:
            yield AdvanceRepair(repair.id, RepairStep.DRAINING, f"{successor.id} serves in its place")
            yield MoveNode(node.id, NodeState.DRAINING, repair.why)
        return
    if repair.successor:
        yield AssignReplacement(repair.id, NodeId(""), "its successor did not come up")
    spare = _spare_near(
        node, [each for each in view.unsettled if ready_spare(each) and each.id not in promised]
    )
    if spare is not None:
        promised.add(spare.id)
        yield AssignReplacement(repair.id, spare.id, "a spare takes its place")
        yield MoveNode(spare.id, NodeState.UNCORDONING, f"takes the place of {node.id}")
    elif not can_surge(view, repair, now):
        # The clouds' quota turned out to be used up: then one has to go before one can come.
        yield AdvanceRepair(repair.id, RepairStep.DRAINING, "no room for a successor beside it", swap=False)
        yield MoveNode(node.id, NodeState.DRAINING, repair.why)


def _spare_near(node: Node, spares: Sequence[Node]) -> Node | None:
    """One of the same zone if possible; the one that waited longest."""
    return min(
        spares,
        key=lambda spare: (spare.place.zone != node.place.zone, spare.since.ns, spare.id),
        default=None,
    )


def _treat(repair: Repair, node: Node, view: PoolView, now: Instant) -> Iterator[Action]:
    heartbeat = view.heartbeat(node.id)
    if repair.id in heartbeat.treated:
        yield AdvanceRepair(repair.id, RepairStep.VERIFYING, f"{repair.remedy.value} was carried out")
        yield MoveNode(node.id, NodeState.VERIFYING, f"after {repair.remedy.value}")
    elif repair.id in heartbeat.refused:
        why = f"{repair.remedy.value} was refused: {heartbeat.refused[repair.id]}"
        yield AdvanceRepair(repair.id, RepairStep.FAILED, why)
    elif now.since(repair.since) > view.spec.timing.treat:
        yield AdvanceRepair(
            repair.id, RepairStep.FAILED, f"{repair.remedy.value} was not carried out in time"
        )


def _verify(repair: Repair, node: Node, view: PoolView, now: Instant) -> Iterator[Action]:
    if node.state in (NodeState.ACTIVE, NodeState.SPARE):
        yield AdvanceRepair(repair.id, RepairStep.DONE, "healthy again")
        return
    sick = node.ailment is not None and node.ailment.result is Health.UNHEALTHY
    # Verified, it only waits for the scheduler.
    late = not node.state.open and now.since(repair.since) > view.spec.timing.verify_most
    if sick or late:
        why = node.ailment.sentence if sick and node.ailment is not None else "not verified in time"
        yield AdvanceRepair(repair.id, RepairStep.FAILED, why)
        yield MoveNode(node.id, NodeState.CORDONED, why)
