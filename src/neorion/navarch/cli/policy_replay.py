"""Judging on this machine, within the limits that hold in the control plane; and the events that it has recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from neorion.keel.cli.kit import Column, Table
from neorion.keel.config import load
from neorion.navarch.adapters.config_file import PolicyFile, default_policy
from neorion.navarch.adapters.policy_engine import SubprocessPolicyEngine
from neorion.navarch.client import NavarchClient
from neorion.navarch.decide.policy import Policy
from neorion.navarch.decide.replay import differences, outcome, situations
from neorion.navarch.model import Health, HealthEvent, Node, NodeId, NodeState, Placement, PolicyResult, wire
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.spec import HealthRules


@dataclass(frozen=True, slots=True)
class PolicyDifferenceRecord:
    """One event, or one node in the end, that another policy judges differently."""

    node: str
    at: str
    event: str
    before: str
    after: str


REPLAYED: Final[Table[PolicyDifferenceRecord]] = Table(
    (
        Column("NODE", lambda it: it.node),
        Column("AT", lambda it: it.at, priority=2),
        Column("EVENT", lambda it: it.event, wrap=True),
        Column("BEFORE", lambda it: it.before, wrap=True),
        Column("AFTER", lambda it: it.after, wrap=True),
    ),
    name=lambda it: it.node,
    empty="Nothing would be different.",
)


class ReplayInput(NamedTuple):
    """A node, its events and the rules of its pool."""

    node: Node
    events: Sequence[HealthEvent]
    rules: HealthRules


def policy_of(path: Path | None, env: Mapping[str, str]) -> Policy:
    return default_policy() if path is None else load(path, PolicyFile, env).policy(str(path))


async def judged(policy: Policy, situations: Sequence[Mapping[str, Any]]) -> Sequence[PolicyResult]:
    async with SubprocessPolicyEngine({policy.name: policy}) as engine:
        return await engine.evaluate(policy.name, situations)


async def recorded(client: NavarchClient, pool: str) -> list[ReplayInput]:
    """Every node that the control plane knows, and what its agent reported."""
    found: list[ReplayInput] = []
    rules = {one.name: HealthRules(unhealthy_after=one.unhealthy_after) for one in await client.pools()}
    async for node in client.nodes(pool):
        answer = await client.calls.history(pb.HistoryRequest(subject=f"events/{node.id}", limit=500))
        events = [msgspec.json.decode(line.data["event"], type=HealthEvent) for line in answer.lines]
        if events:
            found.append(ReplayInput(_node(node), events, rules[node.pool]))
    return found


async def compared(
    stories: Sequence[ReplayInput], before: Policy, after: Policy
) -> list[PolicyDifferenceRecord]:
    # All of them in one go: a judge is a process, and a fleet has thousands of nodes.
    asked = [one for story in stories for one in situations(story.node, story.events)]
    was, would = iter(await judged(before, asked)), iter(await judged(after, asked))
    rows: list[PolicyDifferenceRecord] = []
    for node, events, rules in stories:
        old, new = (list(islice(verdicts, len(events))) for verdicts in (was, would))
        rows += [
            PolicyDifferenceRecord(one.node, str(one.at), one.event, one.before, one.after)
            for one in differences(node, events, old, new)
        ]
        ends = [outcome(node, events, verdicts, rules) or "nothing" for verdicts in (old, new)]
        if ends[0] != ends[1]:
            rows.append(PolicyDifferenceRecord(node.id, "", "in the end it needs", ends[0], ends[1]))
    return rows


def _node(message: pb.Node) -> Node:
    place = message.place or pb.Place()
    node = Node(
        NodeId(message.id),
        message.pool,
        Placement(place.provider, place.instance_type, place.region, place.zone),
        wire.moment(message.born_ms),
        wire.moment(message.since_ms),
        NodeState(message.state),
        gpus=message.gpus,
    )
    return replace(node, health=Health.HEALTHY)
