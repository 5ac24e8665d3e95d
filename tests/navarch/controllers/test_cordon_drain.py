"""What the scheduler believes is what the state says, in the end."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest

from neorion.capacity.fake import FakeCloud
from neorion.keel.base import Duration, Retry
from neorion.keel.clock import SystemClock, seeded_rng
from neorion.keel.store import MemoryDisk
from neorion.navarch.adapters.null import NoScheduler
from neorion.navarch.controllers.operator_actions import Requester
from neorion.navarch.model import Node, NodeId, NodeState
from neorion.navarch.ports import DrainProgress, SchedulingStatus
from neorion.navarch.testing import spec
from tests.navarch.plane import INSTANT, Running, running

pytestmark = pytest.mark.anyio
ASKER = Requester("a person")


class Slow(NoScheduler):
    """Takes its time over a cordon."""

    def __init__(self) -> None:
        self.closed: set[NodeId] = set()
        self.asked = anyio.Event()
        self.go = anyio.Event()
        self.opened = anyio.Event()

    async def cordon(self, node: Node, why: str) -> None:
        del why
        self.asked.set()
        await self.go.wait()
        self.closed.add(node.id)

    async def uncordon(self, node: Node) -> SchedulingStatus:
        self.closed.discard(node.id)
        self.opened.set()
        return SchedulingStatus(schedulable=True)


async def test_a_node_that_goes_back_to_work_while_it_is_being_cordoned_takes_work_in_the_end():
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        it.plane.fleet.reports.heartbeat(node.id, (), tested=True)
        await it.turn()
        context, slow = it.plane.fleet.context, Slow()
        context.backends = replace(context.backends, scheduler=slow)
        await it.plane.orders.cordon(node.id, ASKER)
        with anyio.fail_after(60):
            await slow.asked.wait()
        await it.plane.orders.uncordon(node.id, ASKER)
        await it.plane.fleet.tick()
        slow.go.set()
        with anyio.fail_after(60):
            await slow.opened.wait()
        assert slow.closed == set()


class Unwilling(NoScheduler):
    """Refuses to open a node until it is told to; counts whom it places work on."""

    def __init__(self) -> None:
        self.open: set[NodeId] = set()
        self.fails = False
        self.joined = False
        self.drained: set[NodeId] = set()

    async def cordon(self, node: Node, why: str) -> None:
        del why
        self.open.discard(node.id)

    async def uncordon(self, node: Node) -> SchedulingStatus:
        if self.fails:
            raise Retry("test.away", "The scheduler answers 500.")
        if not self.joined:
            return SchedulingStatus(schedulable=False, sentence="it has not joined the cluster")
        self.open.add(node.id)
        return SchedulingStatus(schedulable=True)

    async def drain(self, node: Node, why: str, left: Duration) -> DrainProgress:
        self.drained.add(node.id)
        return await super().drain(node, why, left)


def some(it: Running, state: NodeState) -> Callable[[], Awaitable[bool]]:
    async def found() -> bool:
        return bool(it.nodes(state))

    return found


async def settle(it: Running) -> None:
    """A few turns, for effects that are repeated for as long as the scheduler does not agree."""
    for _ in range(5):
        await it.plane.fleet.tick()
        await anyio.lowlevel.checkpoint()


async def test_a_node_is_active_only_when_the_scheduler_places_work_on_it():
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        context, unwilling = it.plane.fleet.context, Unwilling()
        context.backends = replace(context.backends, scheduler=unwilling)
        await it.plane.orders.cordon(node.id, ASKER)
        await it.turn()
        await it.plane.orders.uncordon(node.id, ASKER)
        await settle(it)
        assert it.nodes(NodeState.ACTIVE) == []
        assert "has not joined the cluster" in context.state.heartbeats[node.id].waits
        unwilling.joined = True
        with anyio.fail_after(60):
            await it.until(some(it, NodeState.ACTIVE))
        assert unwilling.open == {node.id}


async def test_after_a_restart_a_node_on_which_nothing_is_placed_is_active_no_more():
    """As a scheduler that lost it would be found: it is asked once more about every node."""
    disk, clock = MemoryDisk(), SystemClock()
    cloud = FakeCloud(clock, seeded_rng(1), INSTANT)
    async with running(spec(1), disk=disk, cloud=cloud) as it:
        await it.serving(1)
    async with running(spec(1), disk=disk, cloud=cloud, scheduler=Unwilling()) as it:
        await settle(it)
        with anyio.fail_after(60):
            await it.until(some(it, NodeState.UNCORDONING))
