"""Prices: asked for, remembered while a cloud does not answer, and taken from the state where it never tells."""

from collections.abc import Sequence

import anyio
import pytest

from neorion.capacity.fake import FakeCloudOptions, FakeProvider
from neorion.capacity.prices import PriceTable
from neorion.capacity.provider import Capability, Offering
from neorion.keel.base import Duration
from neorion.navarch.app import control_plane
from neorion.navarch.controllers.pricing import PriceRefresher
from neorion.navarch.model import Availability, HoldReason, NodeState
from neorion.navarch.model.spec import Offer, SpendLimits, Strategy
from neorion.navarch.testing import spec
from tests.navarch.plane import running

pytestmark = pytest.mark.anyio

H100 = "gpu_8x_h100_sxm5"
KEY = f"fake/us-west-2//{H100}"


def _asking(price: float | None = None) -> FakeCloudOptions:
    return FakeCloudOptions(boot=Duration(0), prices={} if price is None else {f"us-west-2/{H100}": price})


async def test_a_pool_with_a_highest_price_buys_when_the_price_is_known():
    capped = spec(1, spending=SpendLimits(price=30.0))
    behaviour = _asking()
    async with running(capped, behaviour=behaviour) as it:
        context = it.plane.fleet.context
        await it.turn()
        assert [hold.code for hold in it.plane.fleet.plan(capped).holds] == [HoldReason.TOO_DEAR]
        behaviour.prices[f"us-west-2/{H100}"] = 23.92
        await PriceRefresher(context, {}).tick()
        await it.turn()
        assert [node.place.price for node in it.nodes()] == [23.92]


CHEAPER_IN_THE_EAST = {f"us-west-2/{H100}": 30.0, f"us-east-1/{H100}": 20.0}
BY_COST = spec(
    1,
    offers=(Offer("fake", H100, ("us-west-2",), priority=1), Offer("fake", H100, ("us-east-1",), priority=2)),
    strategy=Strategy.COST,
)


async def test_the_first_machine_after_a_start_is_bought_where_it_is_cheapest():
    async with running(
        BY_COST, behaviour=FakeCloudOptions(boot=Duration(0), prices=CHEAPER_IN_THE_EAST)
    ) as it:
        await it.turn()
        assert [(node.place.region, node.place.price) for node in it.nodes()] == [("us-east-1", 20.0)]


class Mute(FakeProvider):
    """Says nothing about prices, not even that it will not."""

    async def offerings(self, instance_types: Sequence[str]) -> Sequence[Offering]:
        del instance_types
        await anyio.sleep_forever()
        raise AssertionError


async def test_a_cloud_that_does_not_tell_its_prices_keeps_nobody_from_buying(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(control_plane, "PRICES_S", 0)
    async with running(BY_COST, seller=Mute) as it:
        await it.turn()
        assert [node.state for node in it.nodes()] == [NodeState.BOOTING]


class Muddled(FakeProvider):
    """Answers what nobody can read."""

    async def offerings(self, instance_types: Sequence[str]) -> Sequence[Offering]:
        raise KeyError(*instance_types)


async def test_prices_that_cannot_be_read_keep_nobody_from_starting():
    async with running(BY_COST, seller=Muddled) as it:
        await it.turn()
        assert [node.state for node in it.nodes()] == [NodeState.BOOTING]


async def test_what_a_cloud_said_last_counts_while_it_does_not_answer():
    behaviour = _asking(20.0)
    async with running(spec(0), behaviour=behaviour) as it:
        market = PriceRefresher(it.plane.fleet.context, {})
        await market.tick()
        behaviour.denied = True
        await market.tick()
        assert it.plane.fleet.context.state.stock == {KEY: Availability(20.0, available=True)}


async def test_where_a_cloud_tells_no_price_the_book_does(monkeypatch: pytest.MonkeyPatch):
    async with running(spec(0)) as it:
        monkeypatch.setattr(FakeProvider, "capabilities", frozenset[Capability]())
        await PriceRefresher(it.plane.fleet.context, {"fake": PriceTable("fake", {H100: 9.5})}).tick()
        assert it.plane.fleet.context.state.stock == {KEY: Availability(9.5)}


async def test_spot_and_reserved_machines_have_prices_of_their_own():
    offers = (Offer("fake", H100, ("us-west-2",), spot=True), Offer("fake", H100, ("us-west-2",)))
    async with running(spec(0, offers=offers)) as it:
        await PriceRefresher(
            it.plane.fleet.context, {"fake": PriceTable("fake", {H100: 9.5, f"{H100}/spot": 3.0})}
        ).tick()
        assert it.plane.fleet.context.state.stock == {
            KEY: Availability(9.5),
            f"{KEY}/spot": Availability(3.0),
        }


@pytest.mark.parametrize(("zone", "price"), [("us-west-2a", 3.0), ("", 4.0)])
async def test_a_zone_counts_for_itself_and_the_dearest_where_the_cloud_chooses(
    monkeypatch: pytest.MonkeyPatch, zone: str, price: float
):
    async def offerings(instance_types: Sequence[str]) -> list[Offering]:
        (kind,) = instance_types
        return [
            Offering(kind, "us-west-2", 3.0, "us-west-2a"),
            Offering(kind, "us-west-2", 4.0, "us-west-2b"),
        ]

    async with running(spec(0, offers=(Offer("fake", H100, ("us-west-2",), (zone,)),))) as it:
        monkeypatch.setattr(it.provider, "offerings", offerings)
        await PriceRefresher(it.plane.fleet.context, {}).tick()
        assert [stock.price for stock in it.plane.fleet.context.state.stock.values()] == [price]
