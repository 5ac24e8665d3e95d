"""Transitions of nodes by time: failed boots, nodes that become active, and nodes that are drained and terminated."""

from collections.abc import Iterator

from neorion.keel.base import Instant
from neorion.navarch.decide.actions import Action, ClearAilment, FailNode, MoveNode, ReportSilence
from neorion.navarch.decide.health import faded
from neorion.navarch.decide.repair_ladder import lemons
from neorion.navarch.model import EventKind, Health, Node, NodeHeartbeat, NodeState, Origin, PoolView


def advance_nodes(view: PoolView, now: Instant) -> Iterator[Action]:
    under_repair = {repair.node for repair in view.open_repairs}
    for node in view.unsettled:
        repaired = node.id in under_repair
        match node.state:
            case NodeState.BOOTING if now.since(node.since) > view.spec.timing.boot:
                yield FailNode(node.id, f"its agent did not register within {view.spec.timing.boot}")
            case NodeState.VERIFYING if not repaired and _on_a_lemon(node, view, now):
                yield FailNode(node.id, f"its host {node.host} cost too many nodes before")
            case NodeState.VERIFYING:
                yield from _verify(node, view, now, repaired=repaired)
            case NodeState.CORDONED | NodeState.DRAINED:
                yield from _resume_or_retire(node, view.heartbeat(node.id), repaired=repaired)
            case _:
                pass
        if node.ailment is not None and faded(node.ailment, view.spec.health, now):
            yield ClearAilment(node.id, f"not seen again within {view.spec.health.window}")
    yield from _silent(view, now)


def _verify(node: Node, view: PoolView, now: Instant, *, repaired: bool) -> Iterator[Action]:
    timing, heartbeat = view.spec.timing, view.heartbeat(node.id)
    sick = node.ailment is not None and node.ailment.result is Health.UNHEALTHY
    if (
        sick
        and node.ailment is not None
        and node.ailment.signature == EventKind.DRIVER
        and heartbeat.tested is None
    ):
        # A driver that is still to come is what its test waits for.
        sick = False
    if repaired and (sick or heartbeat.tested is not True):
        # Treated, it serves again when it says itself that it is fit; until then the repair decides what comes next.
        return
    if node.origin is Origin.JOINED and not (heartbeat.tested and not sick):
        # Its owner decides what becomes of it: an illness is repaired like any other, and until it is fit it does not serve.
        if sick:
            yield MoveNode(node.id, NodeState.CORDONED, "sick before it served")
    elif sick and node.ailment is not None:
        yield FailNode(node.id, f"sick before it served: {node.ailment.sentence}")
    elif heartbeat.tested is False:
        yield FailNode(node.id, "it did not pass its own test")
    elif now.since(node.since) > timing.verify_most:
        yield FailNode(node.id, f"not verified within {timing.verify_most}")
    elif heartbeat.tested and not now.since(node.since) < timing.verify and not node.held:
        if node.spare:
            yield MoveNode(node.id, NodeState.SPARE, "verified, and kept as a spare")
        else:
            yield MoveNode(node.id, NodeState.UNCORDONING, "verified")


def _resume_or_retire(node: Node, heartbeat: NodeHeartbeat, *, repaired: bool) -> Iterator[Action]:
    """Moves a node that is not held: a retiring one towards termination, another one back into service."""
    if repaired or node.held:
        return
    if node.retiring:
        if node.state is NodeState.CORDONED and heartbeat.marked:
            yield MoveNode(node.id, NodeState.DRAINING, node.why)
        elif node.state is NodeState.DRAINED:
            yield MoveNode(node.id, NodeState.TERMINATING, node.why)
    elif node.ailment is None or node.ailment.result is not Health.UNHEALTHY:
        if node.state is NodeState.CORDONED:
            yield MoveNode(node.id, NodeState.UNCORDONING, "nothing keeps it from working")
        else:
            yield MoveNode(node.id, NodeState.CORDONED, "nothing keeps it from working")


def _on_a_lemon(node: Node, view: PoolView, now: Instant) -> bool:
    return bool(node.host) and node.host in lemons(view.repairs, view.spec.health.ladder, now)


def _silent(view: PoolView, now: Instant) -> Iterator[ReportSilence]:
    quiet_since = (now - view.spec.timing.silence).ns
    for node, heard in view.speaking():
        if heard.ns >= quiet_since:
            return
        if node.ailment is not None and node.ailment.signature == EventKind.SILENCE:
            continue
        # Where something worse is known of the node, its silence was noted and changed nothing.
        events = view.events.get(node.id, ())
        if not any(event.kind is EventKind.SILENCE and event.at.ns >= quiet_since for event in events):
            yield ReportSilence(node.id, heard)
