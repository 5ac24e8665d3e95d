"""No orphan is paid for and no ghost is counted, on every cloud."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

import pytest
from msgspec import structs

from neorion.capacity.provider import IntentId, Machine
from neorion.keel.base import Deadline, Duration
from neorion.keel.clock import SystemIds
from neorion.keel.store import MemoryDisk
from neorion.navarch.act import sweep
from neorion.navarch.act.orders import Asker
from neorion.navarch.decide import BuyNode
from neorion.navarch.model import Node, NodeState, Place, PoolSpec, PurchaseState
from neorion.navarch.model.spec import Offer, Scaling
from neorion.navarch.testing import spec
from tests.capacity.clouds.rigs import RIGS, Rig
from tests.navarch.plane import Running, running

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, slots=True)
class Shop:
    """A cloud, and a pool that is paused: it buys what a test tells it to."""

    rig: Rig
    spec: PoolSpec
    place: Place

    async def machines(self, it: Running) -> list[Machine]:
        return list(await self.rig.provider.list(it.plane.fleet.deck.installation.id))

    async def order(self, it: Running) -> None:
        await it.plane.orders.pause(self.spec.name, Asker("a test"))
        it.plane.fleet.applier.apply(BuyNode(self.spec.name, self.place, "a test"))

    async def bought(self, it: Running) -> Node:
        await self.order(it)
        await it.turn()
        (node,) = it.nodes()
        assert node.state is NodeState.BOOTING
        return node


@pytest.fixture(params=sorted(RIGS))
async def shop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Shop]:
    monkeypatch.setattr(sweep, "GRACE", Duration(0))
    async with RIGS[request.param]() as rig:
        asked = rig.intent
        place = Place(rig.provider.name, asked.instance_type, asked.region, asked.zone)
        pool = spec(
            0,
            offers=(Offer(place.provider, place.instance_type, (place.region,), (place.zone,)),),
            scaling=Scaling(least=0, most=10),
            image=asked.image,
            ssh_keys=asked.ssh_keys,
        )
        yield Shop(rig, pool, place)


async def test_a_machine_whose_answer_was_lost_is_taken_in_by_the_next_life(shop: Shop):
    disk = MemoryDisk()
    async with running(shop.spec, disk=disk, others=[shop.rig.provider]) as it:
        await shop.order(it)
        await it.plane.fleet.deck.journal.durable()
        shop.rig.lose_answers()
        (purchase,) = it.plane.fleet.deck.book.purchases
        with pytest.raises(Deadline):
            await it.plane.fleet.buyer.buy(purchase)
        shop.rig.answer_again()
    disk.crash()
    async with running(shop.spec, disk=disk, others=[shop.rig.provider]) as it:
        await it.plane.sweep.tick()
        (node,), (machine,) = it.nodes(), await shop.machines(it)
        assert (node.state, node.machine) == (NodeState.BOOTING, machine.id)
        assert it.plane.fleet.deck.book.purchases[purchase].state is PurchaseState.BOUGHT


async def test_a_machine_that_the_book_gave_up_is_given_back(shop: Shop):
    async with running(shop.spec, others=[shop.rig.provider]) as it:
        node = await shop.bought(it)
        it.plane.fleet.moves.node(node, NodeState.TERMINATED, "a test forgets it")
        await it.plane.fleet.deck.journal.durable()
        await it.plane.sweep.tick()
        assert await shop.machines(it) == []
        assert [finding.code for finding in it.plane.sweep.findings.values()] == ["navarch.orphan"]


async def test_a_machine_that_nobody_here_asked_for_is_told_of_and_left_alone(shop: Shop):
    async with running(shop.spec, others=[shop.rig.provider]) as it:
        owner = it.plane.fleet.deck.installation.id
        foreign = replace(shop.rig.intent, id=SystemIds().new(IntentId), owner=owner)
        machine = await shop.rig.provider.provision(foreign)
        await it.plane.sweep.tick()
        assert [one.id for one in await shop.machines(it)] == [machine.id]
        assert [finding.code for finding in it.plane.sweep.findings.values()] == ["navarch.foreign_machine"]


async def test_a_record_whose_machine_is_gone_is_closed(shop: Shop):
    async with running(shop.spec, others=[shop.rig.provider]) as it:
        node = await shop.bought(it)
        await shop.rig.provider.terminate(node.machine)
        for _ in range(sweep.MISSING_TIMES):
            assert it.nodes() != []
            await it.plane.sweep.tick()
        assert it.nodes() == []


async def test_a_machine_that_is_there_keeps_its_record_and_is_known_better(shop: Shop):
    async with running(shop.spec, others=[shop.rig.provider]) as it:
        node = await shop.bought(it)
        it.plane.fleet.moves.change(structs.replace(node, machine_name="", host="", address=""))
        for _ in range(3):
            await it.plane.sweep.tick()
        (kept,), (machine,) = it.nodes(), await shop.machines(it)
        assert kept.id == node.id
        assert (kept.machine_name, kept.host) == (machine.name, machine.host)
        assert kept.address == (machine.private_address or machine.address)
        assert it.plane.sweep.findings == {}
