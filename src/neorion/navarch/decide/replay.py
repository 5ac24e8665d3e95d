"""Replay of past events against another policy."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neorion.keel.base import Instant
from neorion.navarch.decide.health import diagnose
from neorion.navarch.decide.policy import NodeHistory, policy_input
from neorion.navarch.model import Health, HealthEvent, Node, PolicyResult
from neorion.navarch.model.spec import HealthRules


@dataclass(frozen=True, slots=True)
class Difference:
    """One event that two policies judge differently."""

    node: str
    at: Instant
    event: str
    before: str
    after: str


def situations(node: Node, events: Sequence[HealthEvent]) -> list[Mapping[str, Any]]:
    """Each event as it was judged when it came, with what had come before it. Repairs are not known any more."""
    return [
        policy_input(event, node, NodeHistory(events[:index]), event.at) for index, event in enumerate(events)
    ]


def differences(
    node: Node, events: Sequence[HealthEvent], before: Sequence[PolicyResult], after: Sequence[PolicyResult]
) -> Iterator[Difference]:
    for event, old, new in zip(events, before, after, strict=True):
        if (old.result, old.remedy, old.certain) != (new.result, new.remedy, new.certain):
            yield Difference(node.id, event.at, event.description, _describe(old), _describe(new))


def outcome(
    node: Node, events: Sequence[HealthEvent], verdicts: Sequence[PolicyResult], rules: HealthRules
) -> str:
    """The hardest remedy that the node would have needed; empty if it stayed healthy."""
    called = ""
    rung = 0
    for event, verdict in zip(events, verdicts, strict=True):
        node = diagnose(node, event, verdict, rules)
        sick = node.ailment
        if sick is not None and sick.result is Health.UNHEALTHY and sick.remedy.rung > rung:
            called, rung = sick.remedy.value, sick.remedy.rung
    return called


def _describe(verdict: PolicyResult) -> str:
    sure = ", certain" if verdict.certain else ""
    return f"{verdict.result.value}, {verdict.remedy.value}{sure} ({verdict.rule or 'no rule'})"
