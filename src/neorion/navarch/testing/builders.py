"""Records and views in few words: what a test does not say is as usual."""

from collections.abc import Sequence
from dataclasses import replace as changed
from typing import Any

from msgspec.structs import replace

from neorion.capacity.gpu import Remedy
from neorion.capacity.provider import MachineId
from neorion.keel.base import Duration, Instant
from neorion.navarch.model import (
    Ailment,
    Health,
    Node,
    NodeHeartbeat,
    NodeId,
    NodeState,
    Placement,
    PoolSpec,
    PoolState,
    PoolView,
    Repair,
    RepairId,
    RepairStep,
)
from neorion.navarch.model.spec import Offer, Scaling

NOW = Instant(1_767_225_600_000_000_000)


def later(seconds: float) -> Instant:
    """So long after NOW; before it, if negative."""
    return NOW + Duration.of(seconds=seconds) if seconds >= 0 else NOW - Duration.of(seconds=-seconds)


def spec(size: int = 10, **changes: Any) -> PoolSpec:  # noqa: ANN401 -- fields of the spec
    """A pool that is to have exactly so many nodes."""
    usual = PoolSpec(
        "training",
        (Offer("fake", "gpu_8x_h100_sxm5", ("us-west-2",)),),
        scaling=Scaling(least=size, most=size),
    )
    return changed(usual, **changes)


def node(number: int = 1, state: NodeState = NodeState.ACTIVE, **changes: Any) -> Node:  # noqa: ANN401 -- fields of the node
    usual = Node(
        id=NodeId(f"node-{number:04d}"),
        pool="training",
        place=Placement("fake", "gpu_8x_h100_sxm5", "us-west-2"),
        born=later(-7_200),
        since=later(-3_600),
        state=state,
        machine=MachineId(f"fake-{number:06d}") if state is not NodeState.ORDERED else MachineId(""),
        gpus=8,
        health=Health.HEALTHY,
    )
    return replace(usual, **changes)


def nodes(count: int, state: NodeState = NodeState.ACTIVE) -> list[Node]:
    return [node(number, state) for number in range(1, count + 1)]


def ailment(
    signature: str = "xid 79",
    remedy: Remedy = Remedy.REPLACE,
    seen: Instant = NOW,
    **changes: Any,  # noqa: ANN401 -- fields of the ailment
) -> Ailment:
    usual = Ailment(signature, signature, remedy, Health.UNHEALTHY, seen, seen, certain=True)
    return replace(usual, **changes)


def repair(sick: Node, step: RepairStep = RepairStep.WAITING, **changes: Any) -> Repair:  # noqa: ANN401 -- fields of the repair
    usual = Repair(
        id=RepairId(f"repair-{sick.id}"),
        node=sick.id,
        pool=sick.pool,
        remedy=Remedy.REPLACE,
        signature="xid 79",
        why="xid 79",
        opened=later(-60),
        since=later(-30),
        step=step,
    )
    return replace(usual, **changes)


def pool_view(
    wanted: PoolSpec,
    members: Sequence[Node],
    repairs: Sequence[Repair] = (),
    **changes: Any,  # noqa: ANN401 -- fields of the view
) -> PoolView:
    """Every node is heard, and every cordon is known to its scheduler."""
    usual = PoolView(
        spec=wanted,
        state=PoolState(wanted.name, wanted=wanted.scaling.least),
        repairs=tuple(repairs),
        heartbeats={
            one.id: NodeHeartbeat(heard=NOW, marked=one.state is not NodeState.ACTIVE) for one in members
        },
    )
    view = changed(usual, **changes)
    for one in members:
        view.roll.put(one)
    for one in sorted(members, key=lambda one: heard.ns if (heard := view.heartbeat(one.id).heard) else 0):
        view.roll.move_to_end(one.id)
    return view
