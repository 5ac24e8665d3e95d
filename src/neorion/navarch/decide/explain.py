"""Explanations in sentences: state, reason and next step. The command line, the RPC and the pages share them."""

from collections.abc import Sequence

from neorion.keel.base import Instant
from neorion.navarch.decide.actions import PoolPlan
from neorion.navarch.decide.incidents import incidents
from neorion.navarch.decide.pool_size import count_members
from neorion.navarch.model import Hold, HoldReason, Node, NodeState, Origin, PoolView, Repair, RepairStep


def explain_node(node: Node, view: PoolView, plan: PoolPlan, now: Instant) -> list[str]:
    told = [f"{node.id} of {node.pool} is {node.state.value} since {node.since}: {node.why or 'as ordered'}."]
    if node.ailment is None:
        told.append(f"It is {node.health.value}.")
    else:
        ailment = node.ailment
        times = "once" if ailment.bursts == 1 else f"{ailment.bursts} times"
        told.append(f"It is {node.health.value}: {ailment.sentence}; seen {times}, first at {ailment.first}.")
        if node.state.serving and ailment.result.value == "degraded":
            told.append(
                f"It counts as unhealthy when that is seen {view.spec.health.unhealthy_after} times within "
                f"{view.spec.health.window}."
            )
    told += [_repair(repair, view) for repair in view.open_repairs if repair.node == node.id]
    told += [
        f"It waits until its cloud or its agent has carried that out, until {repair.since + view.spec.timing.treat} at the latest."
        for repair in view.open_repairs
        if repair.node == node.id and repair.step is RepairStep.TREATING
    ]
    heartbeat = view.heartbeat(node.id)
    if node.state is NodeState.ORDERED:
        told.append("It waits: its cloud has not answered yet.")
    if node.state is NodeState.BOOTING:
        told.append(
            f"It waits: its agent has not registered yet, and has until {node.since + view.spec.timing.boot}."
        )
    if node.state is NodeState.VERIFYING and not heartbeat.tested:
        said = (
            "its agent has not said yet that it is fit"
            if heartbeat.tested is None
            else "it did not pass its own test"
        )
        told.append(f"It waits: {said}.")
    if heartbeat.waits:
        told.append(f"It waits: {heartbeat.waits.removesuffix('.')}.")
    holds = [hold for hold in plan.holds if hold.subject == node.id]
    if node.held and not holds:
        # Nothing else would say that it stays so until a person lets it go.
        holds = [Hold(HoldReason.HELD_BY_OPERATOR, node.id, detail=node.why)]
    told += [f"{hold.sentence} {hold.hint}".strip() for hold in holds]
    told += [f"Next: {action.sentence}" for action in plan.actions if getattr(action, "node", "") == node.id]
    if len(told) == 2 and node.state is NodeState.ACTIVE:
        told.append(f"Nothing is to be done ({now}).")
    return told


def explain_pool(view: PoolView, plan: PoolPlan, now: Instant) -> list[str]:
    spec, state = view.spec, view.state
    have = count_members(view)
    limits = f"between {spec.scaling.least} and {spec.scaling.most}"
    wants = max(state.wanted, spec.scaling.least)
    told = [
        f"{spec.name} has {have} nodes and wants {wants}, {limits}: {state.wanted_by or 'as configured'}."
    ]
    if joined := [node.id for node in view.nodes if node.origin is Origin.JOINED]:
        told.append(f"It also watches adopted machines ({len(joined)}): {_some(joined)}.")
    if state.paused:
        told.append(f"It is paused: {state.paused}.")
    if sick := [node.id for node in view.nodes if node.ailment is not None]:
        told.append(f"Not all of its nodes are healthy ({len(sick)}): {_some(sick)}.")
    told += [incident.sentence for incident in incidents(view, now)]
    told += [_repair(repair, view) for repair in view.open_repairs]
    told += _grouped_holds(plan)
    told += [f"Next: {action.sentence}" for action in plan.actions]
    return told


def _repair(repair: Repair, view: PoolView) -> str:
    order = "its successor comes before the drain" if repair.swap else "it is drained first"
    if repair.step is RepairStep.WAITING:
        return f"{repair.node} waits for {repair.remedy.value}: {repair.why}."
    successor = view.node(repair.successor) if repair.successor else None
    who = f"; {successor.id} takes its place and is {successor.state.value}" if successor else ""
    return f"{repair.node} is being repaired ({repair.remedy.value}, {repair.step.value} since {repair.since}, {order}){who}."


def _grouped_holds(plan: PoolPlan) -> list[str]:
    """Twenty nodes that wait for the same reason are one sentence."""
    told: dict[str, list[str]] = {}
    for hold in plan.holds:
        told.setdefault(
            f"{hold.sentence} {hold.hint if hold.subject not in hold.hint else ''}".strip(), []
        ).append(hold.subject)
    return [f"{_some(subjects)} waits: {words}" for words, subjects in told.items()]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:3])} and {len(names) - 3} more"
