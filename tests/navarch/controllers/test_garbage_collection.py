"""No orphan is paid for and no ghost is counted, on every cloud."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest
from msgspec import structs

from neorion.capacity.fake import FakeProvider
from neorion.capacity.provider import IntentId, Machine, MachineId, unknown_outcome
from neorion.keel.base import Deadline, Duration
from neorion.keel.clock import SystemIds
from neorion.keel.store import MemoryDisk, Store
from neorion.navarch.adapters.null import NoScheduler
from neorion.navarch.controllers import garbage_collection
from neorion.navarch.controllers.operator_actions import Requester
from neorion.navarch.decide import ProvisionNode
from neorion.navarch.model import Node, NodeState, Placement, PoolSpec, PurchaseState
from neorion.navarch.model.spec import Offer, Scaling
from neorion.navarch.state.codec import decode
from neorion.navarch.testing import spec
from tests.capacity.clouds.rigs import RIGS, Rig
from tests.navarch.plane import INSTANT, Running, running

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, slots=True)
class Shop:
    """A cloud, and a pool that is paused: it buys what a test tells it to."""

    rig: Rig
    spec: PoolSpec
    place: Placement

    @asynccontextmanager
    async def running(self, disk: MemoryDisk | None = None) -> AsyncGenerator[Running]:
        """A control plane that has swept once, as it does at its start: a test's own sweeps are the only ones."""
        swept, tick = asyncio.Event(), garbage_collection.GarbageCollector.tick

        async def first(one: garbage_collection.GarbageCollector) -> None:
            await tick(one)
            swept.set()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(garbage_collection.GarbageCollector, "tick", first)
            async with running(self.spec, disk=disk, others=[self.rig.provider]) as it:
                await swept.wait()
                patch.undo()
                yield it

    async def machines(self, it: Running) -> list[Machine]:
        return list(await self.rig.provider.list(it.plane.fleet.context.installation.id))

    async def order(self, it: Running) -> None:
        await it.plane.orders.pause(self.spec.name, Requester("a test"))
        it.plane.fleet.applier.apply(ProvisionNode(self.spec.name, self.place, "a test"))

    async def bought(self, it: Running) -> Node:
        await self.order(it)
        await it.turn()
        (node,) = it.nodes()
        assert node.state is NodeState.BOOTING
        return node


@pytest.fixture(params=sorted(RIGS))
async def shop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Shop]:
    monkeypatch.setattr(garbage_collection, "GRACE", Duration(0))
    async with RIGS[request.param]() as rig:
        asked = rig.intent
        place = Placement(rig.provider.name, asked.instance_type, asked.region, asked.zone)
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
    async with shop.running(disk) as it:
        # Before it is ordered: the wheel turns by itself, and buys as well.
        shop.rig.lose_answers()
        await shop.order(it)
        (purchase,) = it.plane.fleet.context.state.purchases
        with pytest.raises(Deadline):
            await it.plane.fleet.provisioner.buy(purchase)
    disk.crash()
    shop.rig.answer_again()
    async with shop.running(disk) as it:
        await it.plane.sweep.tick()
        (node,), (machine,) = it.nodes(), await shop.machines(it)
        assert (node.state, node.machine) == (NodeState.BOOTING, machine.id)
        assert it.plane.fleet.context.state.purchases[purchase].state is PurchaseState.BOUGHT


async def test_a_machine_that_the_book_gave_up_is_given_back(shop: Shop):
    async with shop.running() as it:
        node = await shop.bought(it)
        ending = it.plane.fleet.writer.transition_node(node, NodeState.TERMINATING, "a test forgets it")
        it.plane.fleet.writer.transition_node(ending, NodeState.TERMINATED, "a test forgets it")
        await it.plane.fleet.context.journal.wait_durable()
        await it.plane.sweep.tick()
        assert await shop.machines(it) == []
        assert [finding.code for finding in it.plane.sweep.findings.values()] == ["navarch.orphan"]


async def test_a_machine_that_nobody_here_asked_for_is_told_of_and_left_alone(shop: Shop):
    async with shop.running() as it:
        owner = it.plane.fleet.context.installation.id
        foreign = replace(shop.rig.intent, id=SystemIds().new(IntentId), owner=owner)
        machine = await shop.rig.provider.provision(foreign)
        await it.plane.sweep.tick()
        assert [one.id for one in await shop.machines(it)] == [machine.id]
        assert [finding.code for finding in it.plane.sweep.findings.values()] == ["navarch.foreign_machine"]


async def test_a_record_whose_machine_is_gone_is_closed(shop: Shop):
    async with shop.running() as it:
        node = await shop.bought(it)
        await shop.rig.provider.terminate(node.machine)
        for _ in range(garbage_collection.MISSING_TIMES):
            assert it.nodes() != []
            await it.plane.sweep.tick()
        await it.turn()
        assert it.nodes() == []


class StoreReader(NoScheduler):
    """Notes the stored record of each node that it is told to forget."""

    store: Store

    def __init__(self) -> None:
        self.stored: list[bytes] = []

    async def forget(self, node: Node) -> None:
        rows = await self.store.read(lambda tx: tx.execute("SELECT body FROM node WHERE id = ?", (node.id,)))
        self.stored += [row[0] for row in rows]


async def test_the_scheduler_forgets_no_node_that_the_store_counts_as_serving(
    monkeypatch: pytest.MonkeyPatch,
):
    """A control plane that is killed after it would come back with a node that only seems to serve."""
    monkeypatch.setattr(garbage_collection, "GRACE", Duration(0))
    scheduler = StoreReader()
    async with running(spec(1), behaviour=INSTANT, scheduler=scheduler) as it:
        scheduler.store = it.plane.fleet.context.store
        (node,) = await it.serving(1)
        await it.plane.orders.pause("training", Requester("a test"))
        it.cloud.vanish(it.cloud.machines[node.machine])
        # Its agent is not heard any more.
        it.plane.fleet.context.state.heartbeats.pop(node.id)
        for _ in range(garbage_collection.MISSING_TIMES):
            await it.plane.sweep.tick()
        await it.turn()
        assert [decode(Node, body).state for body in scheduler.stored] == [NodeState.TERMINATING]


async def test_a_machine_that_is_there_keeps_its_record_and_is_known_better(shop: Shop):
    async with shop.running() as it:
        node = await shop.bought(it)
        it.plane.fleet.writer.update_node(structs.replace(node, machine_name="", host="", address=""))
        for _ in range(3):
            await it.plane.sweep.tick()
        (kept,), (machine,) = it.nodes(), await shop.machines(it)
        assert kept.id == node.id
        assert (kept.machine_name, kept.host) == (machine.name, machine.host)
        assert kept.address == (machine.private_address or machine.address)
        assert it.plane.sweep.findings == {}


class Sulky(FakeProvider):
    """Does not end one of its machines; what it does instead is for a test to say."""

    spared = ""

    async def instead(self) -> None:
        raise unknown_outcome(self.name, "it does not say")

    async def terminate(self, machine: MachineId) -> None:
        await (self.instead() if machine == self.spared else super().terminate(machine))


@asynccontextmanager
async def sulking(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[tuple[Running, Sulky]]:
    monkeypatch.setattr(garbage_collection, "GRACE", Duration(0))
    async with running(spec(3), seller=Sulky) as it:
        await it.turn()
        assert isinstance(it.provider, Sulky)
        yield it, it.provider


async def forgotten(it: Running, *nodes: Node) -> None:
    """Machines of which the state knows nothing any more, in a pool that buys no others."""
    await it.plane.orders.pause("training", Requester("a test"))
    for node in nodes:
        ending = it.plane.fleet.writer.transition_node(node, NodeState.TERMINATING, "a test forgets it")
        it.plane.fleet.writer.transition_node(ending, NodeState.TERMINATED, "a test forgets it")
    await it.plane.fleet.context.journal.wait_durable()


async def test_an_orphan_that_does_not_go_keeps_no_other_from_going(monkeypatch: pytest.MonkeyPatch):
    async with sulking(monkeypatch) as (it, provider):
        nodes = it.nodes()
        provider.spared = nodes[0].machine
        await forgotten(it, *nodes)
        await it.plane.sweep.tick()
        left = await provider.list(it.plane.fleet.context.installation.id)
        assert [machine.id for machine in left] == [provider.spared]


async def test_a_ghost_that_nobody_can_confirm_keeps_no_other_from_being_closed(
    monkeypatch: pytest.MonkeyPatch,
):
    async with sulking(monkeypatch) as (it, provider):
        first, *others = it.nodes()
        await it.plane.orders.pause("training", Requester("a test"))
        for node in it.nodes():
            await provider.terminate(node.machine)
        describe = provider.describe

        async def silent(machine: MachineId) -> Machine:
            if machine == first.machine:
                raise unknown_outcome(provider.name, "it does not say")
            return await describe(machine)

        monkeypatch.setattr(provider, "describe", silent)
        for _ in range(garbage_collection.MISSING_TIMES):
            await it.plane.sweep.tick()
        await it.turn()
        assert len(others) == 2
        assert [node.id for node in it.nodes()] == [first.id]


async def test_what_changes_while_an_orphan_is_given_back_is_not_undone(monkeypatch: pytest.MonkeyPatch):
    async with sulking(monkeypatch) as (it, provider):
        orphan, coming, _ = it.nodes()
        provider.spared = orphan.machine
        await forgotten(it, orphan)
        # Something is to be learnt about it, so its record is written.
        it.plane.fleet.writer.update_node(structs.replace(coming, host=""))

        async def registers() -> None:
            await it.register(coming)

        monkeypatch.setattr(provider, "instead", registers)
        await it.plane.sweep.tick()
        kept = it.plane.fleet.context.state.nodes[coming.id]
        assert kept.state is NodeState.VERIFYING
        assert kept.host


async def test_a_machine_that_becomes_known_while_an_orphan_is_given_back_is_kept(
    monkeypatch: pytest.MonkeyPatch,
):
    async with sulking(monkeypatch) as (it, provider):
        orphan, _, coming = it.nodes()
        state = it.plane.fleet.context.state
        provider.spared = orphan.machine
        await forgotten(it, orphan)
        # As it was before the cloud's answer came.
        bought = state.purchases[coming.purchase]
        state.put_node(structs.replace(coming, state=NodeState.ORDERED, machine=MachineId("")))
        state.put_purchase(structs.replace(bought, state=PurchaseState.INTENDED, machine=MachineId("")))
        machine = await provider.describe(coming.machine)

        async def answers() -> None:
            it.plane.fleet.provisioner.bought(coming.purchase, machine)

        monkeypatch.setattr(provider, "instead", answers)
        await it.plane.sweep.tick()
        left = await provider.list(it.plane.fleet.context.installation.id)
        assert coming.machine in [one.id for one in left]
        assert coming.machine not in it.plane.sweep.findings
