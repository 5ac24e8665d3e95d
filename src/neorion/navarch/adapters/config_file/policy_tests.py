"""Files that say what a policy should make of an event: unit tests for policies."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Duration, Instant, did_you_mean
from neorion.keel.config import DurationField, Model, Problem
from neorion.navarch.adapters.config_file.policies import RemedyName
from neorion.navarch.decide.policy import NodeHistory, policy_input
from neorion.navarch.model import (
    EventKind,
    HealthEvent,
    Node,
    NodeId,
    NodeState,
    Placement,
    PolicyResult,
    Repair,
    RepairId,
)

# Some day: tests speak of spans before it, never of dates.
_NOW = Instant(1_767_225_600_000_000_000)


def _among(key: str, value: str, known: Iterable[str]) -> Iterable[Problem]:
    words = [str(one) for one in known]
    if value not in words:
        hint = did_you_mean(value, words) or f"Write one of {', '.join(words)}."
        yield Problem((key,), f'"{value[:40]}" is no {key}.', hint)


class EventModel(Model):
    """An event from an agent."""

    type: str = Field(default="xid", description="What kind of event.")
    xid: int = Field(default=0, ge=0, description="Its error code, if it has one.")
    gpu: int = Field(default=-1, ge=-1, description="Which GPU; -1 for the whole machine.")
    message: str = Field(default="", description="The driver's words.")
    metrics: dict[str, float] = Field(default_factory=dict, description="Numbers that come with it.")

    def problems(self) -> Iterable[Problem]:
        yield from _among("type", self.type, EventKind)

    def value(self, at: Instant) -> HealthEvent:
        return HealthEvent(
            at, EventKind(self.type), self.gpu, xid=self.xid, message=self.message, metrics=dict(self.metrics)
        )


class PastEvent(EventModel):
    """An earlier event."""

    ago: DurationField = Field(description="How long before the event.")


class NodeModel(Model):
    """The node, as far as it matters."""

    pool: str = Field(default="training", description="Its pool.")
    state: str = Field(default="active", description="Its state.")
    provider: str = Field(default="fake", description="Its cloud.")
    instance_type: str = Field(default="gpu_8x_h100_sxm5", description="What it is.")
    region: str = Field(default="", description="Where it is.")
    zone: str = Field(default="", description="Where in it.")
    gpu_count: int = Field(default=8, ge=0, description="How many GPUs it has.")
    age: DurationField = Field(default=Duration.of(hours=24), description="How long ago it was ordered.")

    def problems(self) -> Iterable[Problem]:
        yield from _among("state", self.state, NodeState)

    def value(self) -> Node:
        place = Placement(self.provider, self.instance_type, self.region, self.zone)
        born = _NOW - self.age
        return Node(
            NodeId("node-of-the-test"),
            self.pool,
            place,
            born,
            born,
            NodeState(self.state),
            gpus=self.gpu_count,
        )


class Expected(Model):
    """The expected result. Fields that are omitted match anything."""

    rule: str | None = Field(default=None, description="The rule that matches first; empty for none.")
    result: Literal["healthy", "degraded", "unhealthy"] | None = Field(
        default=None, description="What it means for the node."
    )
    action: RemedyName | None = Field(default=None, description="What is to be done.")
    certain: bool | None = Field(default=None, description="Whether one such event is enough.")

    def problems(self) -> Iterable[Problem]:
        if not self.model_fields_set:
            yield Problem((), "It expects nothing.", "Write rule, result, action or certain.")

    def differences(self, verdict: PolicyResult) -> list[str]:
        got = {
            "rule": verdict.rule,
            "result": verdict.result.value,
            "action": verdict.remedy.value,
            "certain": verdict.certain,
        }
        return [
            f"{key} is {got[key]!r}, not {getattr(self, key)!r}"
            for key in ("rule", "result", "action", "certain")
            if getattr(self, key) is not None and getattr(self, key) != got[key]
        ]


class CaseModel(Model):
    """One test."""

    name: str = Field(min_length=1, description="What should be so.")
    event: EventModel = Field(description="What happens.")
    node: NodeModel = Field(default_factory=NodeModel, description="To whom.")
    recent: tuple[PastEvent, ...] = Field(default=(), max_length=64, description="What happened before.")
    repairs: int = Field(default=0, ge=0, le=100, description="Repairs in the week before.")
    expect: Expected = Field(description="What the policy should say.")

    def situation(self) -> dict[str, Any]:
        node = self.node.value()
        past = sorted((one.value(_NOW - one.ago) for one in self.recent), key=lambda one: one.at.ns)
        repair = Repair(
            RepairId("repair-of-the-test"), node.id, node.pool, Remedy.RESET_GPU, "", "", _NOW, _NOW
        )
        return policy_input(self.event.value(_NOW), node, NodeHistory(past, [repair] * self.repairs), _NOW)


class PolicyTestFile(Model):
    """A policy and what is expected of it."""

    policy: str = Field(default="", description="The file of the policy; the one of navarch if not given.")
    tests: tuple[CaseModel, ...] = Field(min_length=1, max_length=1_000, description="The tests.")

    def problems(self) -> Iterable[Problem]:
        names: set[str] = set()
        for index, case in enumerate(self.tests):
            if case.name in names:
                yield Problem(("tests", index, "name"), f'There are two tests "{case.name}".', "Rename one.")
            names.add(case.name)

    def policy_path(self, folder: Path) -> Path | None:
        return folder / self.policy if self.policy else None


@dataclass(frozen=True, slots=True)
class Failure:
    """A test that the policy does not pass."""

    name: str
    differences: tuple[str, ...]
    sentence: str


def failures(file: PolicyTestFile, verdicts: Iterable[PolicyResult]) -> list[Failure]:
    return [
        Failure(case.name, tuple(found), verdict.sentence)
        for case, verdict in zip(file.tests, verdicts, strict=True)
        if (found := case.expect.differences(verdict))
    ]
