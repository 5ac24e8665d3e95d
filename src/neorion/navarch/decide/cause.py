"""Many nodes, one cause: repairs that should wait, and explanations that are told once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neorion.capacity.gpu import xid
from neorion.keel.base import Duration, Instant
from neorion.navarch.model import EventKind, Health, HealthEvent, Hold, HoldCode, Node, NodeId, PoolView
from neorion.navarch.model.spec import CommonCause

# Fewer nodes than this with the same event are several stories, not one.
INCIDENT_NODES = 3
INCIDENT_WITHIN = Duration.of(minutes=10)


@dataclass(frozen=True, slots=True)
class Incident:
    """One event on many nodes within a short time, told as one thing."""

    signature: str
    nodes: tuple[NodeId, ...]
    first: Instant
    last: Instant
    sentence: str


def common_causes(nodes: Sequence[Node], size: int, rule: CommonCause, now: Instant) -> dict[str, Hold]:
    """By signature, why its repairs wait. It clears by itself: a wait for more news ends when there are none."""
    first: dict[str, list[Instant]] = {}
    for node in nodes:
        if node.ailment is not None and node.ailment.result is Health.UNHEALTHY:
            first.setdefault(node.ailment.signature, []).append(node.ailment.first)
    held: dict[str, Hold] = {}
    for signature, seen in first.items():
        newest = max(seen)
        together = [at for at in seen if newest.since(at) <= rule.within]
        until = min(newest + rule.settle, min(together) + rule.within)
        if len(together) >= max(rule.least, size * rule.share / 100) and now < until:
            held[signature] = Hold(
                HoldCode.COMMON_CAUSE, "", have=len(together), most=size, detail=signature, until=until
            )
    return held


def incidents(view: PoolView, now: Instant) -> list[Incident]:
    """What happened to many nodes at once lately, whether or not anything is wrong with them."""
    seen: dict[str, dict[NodeId, list[HealthEvent]]] = {}
    for node, events in view.events.items():
        for event in events:
            if now.since(event.at) <= INCIDENT_WITHIN:
                seen.setdefault(event.signature, {}).setdefault(node, []).append(event)
    return [
        _incident(signature, by_node, view)
        for signature, by_node in seen.items()
        if len(by_node) >= INCIDENT_NODES
    ]


def _incident(signature: str, by_node: Mapping[NodeId, list[HealthEvent]], view: PoolView) -> Incident:
    events = [event for each in by_node.values() for event in each]
    first, last = min(event.at for event in events), max(event.at for event in events)
    sentence = (
        f"{events[0].words} on {len(by_node)} nodes of {view.spec.name} within {_rough(last.since(first))}: "
        f"{_blame(events[0])}."
    )
    return Incident(signature, tuple(sorted(by_node)), first, last, sentence)


def _blame(event: HealthEvent) -> str:
    if event.kind is EventKind.XID and not xid(event.xid).kind.blames_the_machine:
        return "the workload did it, no node is at fault and none is taken out of service"
    if event.kind is EventKind.SILENCE:
        return "more likely the network between us than the machines"
    return "so many machines at once share a cause, such as power, cooling or a switch"


def _rough(span: Duration) -> str:
    return f"{max(1, round(span.seconds))}s"
