"""From a verdict on one event to the health of its node."""

from msgspec.structs import replace

from neorion.keel.base import Instant
from neorion.navarch.model import Ailment, Health, HealthEvent, Node, PolicyResult
from neorion.navarch.model.spec import HealthRules

_RANK = {Health.HEALTHY: 0, Health.UNKNOWN: 0, Health.DEGRADED: 1, Health.UNHEALTHY: 2}


def diagnose(node: Node, event: HealthEvent, verdict: PolicyResult, rules: HealthRules) -> Node:
    """The node as it is after this event. A milder finding does not hide a worse one that still stands."""
    old = node.ailment
    if verdict.result in (Health.HEALTHY, Health.UNKNOWN):
        return recovered(node) if old is not None and old.signature == event.signature else node
    new = _ailment(old, event, verdict, rules)
    if old is not None and old.signature != new.signature and _weight(old) > _weight(new):
        return node
    return replace(node, ailment=new, health=new.result)


def recovered(node: Node) -> Node:
    return replace(node, ailment=None, health=Health.HEALTHY)


def faded(ailment: Ailment, rules: HealthRules, now: Instant) -> bool:
    """A doubt that was not confirmed in time, or an application that is over. What a machine has does not go away by waiting."""
    lasts = ailment.result is Health.UNHEALTHY and not ailment.is_the_workloads
    return not lasts and now.since(ailment.last) > rules.window


def _ailment(old: Ailment | None, event: HealthEvent, verdict: PolicyResult, rules: HealthRules) -> Ailment:
    first, bursts, certain = event.at, 1, verdict.certain
    if old is not None and old.signature == event.signature and event.at.since(old.last) <= rules.window:
        first = old.first
        # Faults come in bursts: what follows closely is the same occurrence.
        bursts = old.bursts + (event.at.since(old.last) > rules.burst)
        certain = certain or old.certain
    reached = certain or bursts >= rules.unhealthy_after
    unhealthy = verdict.result is Health.UNHEALTHY and reached
    return Ailment(
        signature=event.signature,
        sentence=verdict.sentence or event.description,
        remedy=verdict.remedy,
        result=Health.UNHEALTHY if unhealthy else Health.DEGRADED,
        first=first,
        last=max(event.at, old.last) if old is not None and bursts > 1 else event.at,
        rule=verdict.rule,
        bursts=bursts,
        certain=certain,
        gpu=event.gpu,
    )


def _weight(ailment: Ailment) -> tuple[int, int]:
    return _RANK[ailment.result], ailment.remedy.rung
