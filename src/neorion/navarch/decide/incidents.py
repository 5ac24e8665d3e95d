"""Many nodes, one cause: repairs that should wait, and explanations that are told once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neorion.capacity.gpu import XidClass, xid
from neorion.keel.base import Duration, Instant
from neorion.navarch.model import EventKind, Health, HealthEvent, Hold, HoldReason, Node, NodeId, PoolView
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
                HoldReason.COMMON_CAUSE, "", have=len(together), most=size, detail=signature, until=until
            )
    return held


def incidents(view: PoolView, now: Instant) -> list[Incident]:
    """Recent events that many nodes share, whether or not they made the nodes unhealthy."""
    since = (now - INCIDENT_WITHIN).ns
    # By what was seen, the newest and the oldest such event of each node.
    seen: dict[tuple[EventKind, int], dict[NodeId, tuple[HealthEvent, HealthEvent]]] = {}
    for node, events in view.events.items():
        # The newest stand last. In a storm this is asked many times a second, and most of what is kept is old.
        for event in reversed(events):
            if event.at.ns < since:
                break
            nodes = seen.setdefault((event.kind, event.xid), {})
            newer = nodes.get(node)
            nodes[node] = (event, event) if newer is None else (newer[0], event)
    return [_incident(by_node, view) for by_node in seen.values() if len(by_node) >= INCIDENT_NODES]


def _incident(by_node: Mapping[NodeId, tuple[HealthEvent, HealthEvent]], view: PoolView) -> Incident:
    last = max((newest for newest, _ in by_node.values()), key=lambda event: event.at.ns)
    first = min((oldest for _, oldest in by_node.values()), key=lambda event: event.at.ns)
    sentence = (
        f"{last.description} on {len(by_node)} nodes of {view.spec.name} within {_rough(last.at.since(first.at))}: "
        f"{_blame(last)}."
    )
    return Incident(last.signature, tuple(sorted(by_node)), first.at, last.at, sentence)


def _blame(event: HealthEvent) -> str:
    if event.kind is EventKind.XID and xid(event.xid).kind is XidClass.APPLICATION:
        return "the workload did it, no node is at fault and none is lost for it"
    if event.kind is EventKind.XID and not xid(event.xid).kind.blames_the_machine:
        return (
            "no machine is at fault; look for what they share, such as a new driver or what another code says"
        )
    if event.kind is EventKind.SILENCE:
        return "more likely the network between us than the machines"
    return "so many machines at once share a cause, such as power, cooling or a switch"


def _rough(span: Duration) -> str:
    return f"{max(1, round(span.seconds))}s"
