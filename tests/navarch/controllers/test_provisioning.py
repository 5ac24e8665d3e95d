"""Purchases: once each, whatever gets lost on the way."""

from contextlib import suppress
from typing import Any

import anyio
import pytest

from neorion.capacity.fake import FakeCloud, FakeCloudOptions, FakeProvider
from neorion.capacity.provider import Intent, IntentId, Machine, unknown_outcome
from neorion.keel.base import Duration, Retry
from neorion.keel.clock import SystemClock, seeded_rng
from neorion.keel.store import MemoryDisk
from neorion.navarch.controllers.operator_actions import Requester
from neorion.navarch.decide import ProvisionNode
from neorion.navarch.model import NodeState, Placement, PurchaseState
from neorion.navarch.model.spec import Offer, Scaling, SpendLimits
from neorion.navarch.testing import spec
from tests.navarch.plane import INSTANT, running

pytestmark = pytest.mark.anyio

PLACE = Placement("fake", "gpu_8x_h100_sxm5", "us-west-2")
# A pool that is paused by its tests: it buys nothing and gives nothing back by itself.
IDLE = spec(0, scaling=Scaling(least=0, most=10_000), spending=SpendLimits(per_hour=10**6))


@pytest.mark.timeout(240)
async def test_ten_thousand_lost_answers_never_buy_twice():
    """Forty-nine of fifty calls break, half of them after the machine was made; now and then the process dies, too."""
    disk = MemoryDisk()
    cloud = FakeCloud(SystemClock(), seeded_rng(7), FakeCloudOptions(lost=0.98))
    lost = orders = 0
    while lost < 10_000:
        async with running(IDLE, disk=disk, cloud=cloud) as it:
            fleet = it.plane.fleet
            await it.plane.orders.pause("training", Requester("a test"))
            for _ in range(40):
                fleet.applier.apply(ProvisionNode("training", PLACE, "a test"))
                orders += 1
            # What is not settled after so many rounds is left to the next life.
            for _ in range(60):
                for purchase in list(fleet.context.state.purchases.values()):
                    with suppress(Retry):
                        await fleet.provisioner.buy(purchase.id)
            lost += it.provider.lost
            await fleet.context.journal.wait_durable()
        disk.crash()
    async with running(IDLE, disk=disk, cloud=cloud) as it:
        cloud.behaviour.lost = 0.0
        await it.turn()
        assert all(
            p.state is not PurchaseState.INTENDED for p in it.plane.fleet.context.state.purchases.values()
        )
    assert lost >= 10_000
    assert set(cloud.bought.values()) == {1}
    assert len(cloud.bought) == orders


async def test_the_intent_is_durable_before_the_cloud_hears_of_it(monkeypatch: pytest.MonkeyPatch):
    async with running(IDLE) as it:
        store, ask = it.plane.fleet.context.store, it.provider.provision
        known: list[bool] = []

        async def listen(intent: Intent) -> Machine:
            rows = await store.read(
                lambda tx: tx.execute("SELECT id FROM purchase WHERE id = ?", (str(intent.id),))
            )
            known.append(rows == [(intent.id,)])
            return await ask(intent)

        monkeypatch.setattr(it.provider, "provision", listen)
        # At once, without a tick that would have waited for the store.
        it.plane.fleet.applier.apply(ProvisionNode("training", PLACE, "a test"))
        (intent,) = it.plane.fleet.context.state.purchases
        await it.plane.fleet.provisioner.buy(intent)
        assert known == [True]


@pytest.mark.parametrize(
    ("lever", "kind", "scope"),
    [
        ({"stock": {"us-west-2": 0}}, "no_capacity", "fake/us-west-2//gpu_8x_h100_sxm5"),
        ({"quota": 0}, "quota", "fake/us-west-2/gpu_8x_h100_sxm5"),
        ({"denied": True}, "denied", "fake"),
    ],
)
async def test_a_refusal_is_remembered_where_it_belongs_and_the_order_is_over(
    lever: dict[str, Any], kind: str, scope: str
):
    async with running(spec(1), behaviour=FakeCloudOptions(**lever)) as it:
        await it.turn()
        assert it.plane.fleet.context.state.troubles[scope].kind == kind
        assert it.nodes() == []
        (hold,) = it.plane.fleet.plan(it.plane.fleet.context.specs["training"]).holds
        assert hold.code.value == "backing_off"


async def test_machines_that_are_refused_together_are_one_refusal():
    async with running(spec(8), behaviour=FakeCloudOptions(quota=0)) as it:
        await it.turn()
        (trouble,) = it.plane.fleet.context.state.troubles.values()
        assert trouble.times == 1
        # And one that was asked for in the knowledge of it is the next.
        it.plane.fleet.applier.apply(ProvisionNode("training", PLACE, "a test"))
        await it.turn()
        assert it.plane.fleet.context.state.troubles[trouble.scope].times == 2


async def test_a_purchase_that_works_clears_the_troubles_of_its_place():
    behaviour = FakeCloudOptions(boot=Duration(0), stock={"us-west-2": 0})
    async with running(spec(1), behaviour=behaviour) as it:
        await it.turn()
        behaviour.stock.clear()
        it.plane.fleet.applier.apply(ProvisionNode("training", PLACE, "a test"))
        await it.turn()
        assert it.plane.fleet.context.state.troubles == {}


async def test_the_next_provider_is_asked_when_the_first_has_none():
    both = spec(1, offers=(Offer("fake", "gpu_8x_h100_sxm5", ("full", "free")),))
    async with running(both, behaviour=FakeCloudOptions(boot=Duration(0), stock={"full": 0})) as it:
        await it.turn()
        await it.turn()
        assert [node.place.region for node in it.nodes()] == ["free"]


@pytest.mark.parametrize("denied", [False, True], ids=["lists nothing", "does not let us in"])
async def test_a_cloud_that_never_answers_is_left_for_another(
    monkeypatch: pytest.MonkeyPatch, *, denied: bool
):
    monkeypatch.setattr("neorion.navarch.controllers.provisioning.ABANDON_AFTER", Duration(0))
    monkeypatch.setattr("neorion.navarch.controllers.provisioning.LISTED_WITHIN", Duration(0))
    deaf = FakeProvider(
        "deaf", FakeCloud(SystemClock(), seeded_rng(1), FakeCloudOptions(denied=denied), name="deaf")
    )

    async def lost(intent: Intent) -> Machine:
        raise unknown_outcome("deaf", str(intent.id))

    monkeypatch.setattr(deaf, "provision", lost)
    offers = (
        Offer("deaf", "gpu_8x_h100_sxm5", ("here",), priority=1),
        Offer("fake", "gpu_8x_h100_sxm5", ("there",), priority=2),
    )
    async with running(spec(1, offers=offers), others=[deaf]) as it:
        fleet = it.plane.fleet
        while not it.nodes(NodeState.BOOTING):
            await fleet.tick()
            await anyio.lowlevel.checkpoint()
        state = fleet.context.state
        assert state.troubles["deaf"].kind == "no_answer"
        assert [one.state for one in state.purchases.values()] == [
            PurchaseState.ABANDONED,
            PurchaseState.BOUGHT,
        ]
        assert [node.place.region for node in it.nodes()] == ["there"]


class Mute(FakeProvider):
    """Makes what it is asked for, and never says so."""

    async def provision(self, intent: Intent) -> Machine:
        await super().provision(intent)
        raise unknown_outcome(self.name, "the answer was lost")


async def test_what_the_last_call_made_is_waited_for_until_the_list_must_have_it(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("neorion.navarch.controllers.provisioning.ABANDON_AFTER", Duration(0))
    late = FakeCloudOptions(boot=Duration(0), unseen=1.0)
    async with running(IDLE, behaviour=late, seller=Mute) as it:
        fleet = it.plane.fleet
        await it.plane.orders.pause("training", Requester("a test"))
        fleet.applier.apply(ProvisionNode("training", PLACE, "a test"))
        (intent,) = fleet.context.state.purchases
        for _ in range(2):
            with pytest.raises(Retry):
                await fleet.provisioner.buy(intent)
        assert fleet.context.state.purchases[intent].state is PurchaseState.INTENDED
        late.unseen = 0.0
        await fleet.provisioner.buy(intent)
        assert fleet.context.state.purchases[intent].state is PurchaseState.BOUGHT
        assert it.cloud.bought == {intent: 1}


async def test_a_machine_whose_purchase_was_given_up_is_given_back_and_a_foreign_one_is_not(
    monkeypatch: pytest.MonkeyPatch,
):
    async with running(IDLE, behaviour=INSTANT) as it:
        fleet = it.plane.fleet
        await it.plane.orders.pause("training", Requester("a test"))
        fleet.applier.apply(ProvisionNode("training", PLACE, "a test"))
        await it.turn()
        (node,) = it.nodes()
        ending = fleet.writer.transition_node(node, NodeState.TERMINATING, "a test forgets it")
        fleet.writer.transition_node(ending, NodeState.TERMINATED, "a test forgets it")
        await fleet.context.journal.wait_durable()
        intent = Intent(
            IntentId("buy-nobody"), fleet.context.installation.id, "gpu_8x_h100_sxm5", "us-west-2"
        )
        foreign = it.cloud.make(intent)
        monkeypatch.setattr("neorion.navarch.controllers.garbage_collection.GRACE", Duration(0))
        await it.plane.sweep.tick()
        it.cloud.settle()
        assert [machine.id for machine in it.cloud.alive()] == [foreign.id]
        assert {finding.code for finding in it.plane.sweep.findings.values()} == {
            "navarch.orphan",
            "navarch.foreign_machine",
        }
