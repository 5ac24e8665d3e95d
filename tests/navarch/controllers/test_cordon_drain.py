"""What the scheduler believes is what the book says, in the end."""

from dataclasses import replace

import anyio
import pytest

from neorion.navarch.adapters.null import NoScheduler
from neorion.navarch.controllers.operator_actions import Requester
from neorion.navarch.model import Node, NodeId
from neorion.navarch.testing import spec
from tests.navarch.plane import running

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

    async def uncordon(self, node: Node) -> None:
        self.closed.discard(node.id)
        self.opened.set()


async def test_a_node_that_goes_back_to_work_while_it_is_being_cordoned_takes_work_in_the_end():
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        it.plane.fleet.reports.heartbeat(node.id, (), tested=True)
        await it.turn()
        deck, slow = it.plane.fleet.deck, Slow()
        deck.world = replace(deck.world, scheduler=slow)
        await it.plane.orders.cordon(node.id, ASKER)
        with anyio.fail_after(60):
            await slow.asked.wait()
        await it.plane.orders.uncordon(node.id, ASKER)
        await it.plane.fleet.tick()
        slow.go.set()
        with anyio.fail_after(60):
            await slow.opened.wait()
        assert slow.closed == set()
