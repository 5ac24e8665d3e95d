"""What is bought, where, and who goes first when there are too many."""

from dataclasses import replace as changed
from itertools import pairwise

import pytest
from msgspec.structs import replace

from neorion.capacity.provider import IntentId
from neorion.keel.base import Duration
from neorion.navarch.decide import AdvanceRepair, ProvisionNode, RetireNode, plan, violations
from neorion.navarch.decide.offering import backoff_until, choose_placement
from neorion.navarch.decide.pool_size import AT_ONCE_MAX
from neorion.navarch.model import (
    Availability,
    Demand,
    FailureStreak,
    Hold,
    HoldReason,
    NodeHeartbeat,
    NodeId,
    NodeState,
    Origin,
    Placement,
    PoolState,
    PoolView,
    Purchase,
    PurchaseState,
    RepairStep,
)
from neorion.navarch.model.spec import Offer, Scaling, SpendLimits, Strategy
from neorion.navarch.testing import NOW, ailment, later, node, nodes, pool_view, repair, spec


def bought(view: PoolView) -> list[ProvisionNode]:
    return [action for action in plan(view, NOW).actions if isinstance(action, ProvisionNode)]


def retired(view: PoolView) -> list[NodeId]:
    return [action.node for action in plan(view, NOW).actions if isinstance(action, RetireNode)]


def holds(view: PoolView) -> list[HoldReason]:
    return [hold.code for hold in plan(view, NOW).holds]


def test_a_pool_is_filled_up_to_its_size_and_no_further():
    assert len(bought(pool_view(spec(5), nodes(2)))) == 3
    assert bought(pool_view(spec(5), nodes(5))) == []


def test_a_large_order_is_placed_in_parts():
    large = spec(100_000, spending=SpendLimits(per_hour=200_000))
    assert len(bought(pool_view(large, []))) == AT_ONCE_MAX


def test_orders_on_their_way_are_not_placed_again():
    assert bought(pool_view(spec(3), [node(1), node(2, NodeState.ORDERED), node(3, NodeState.BOOTING)])) == []


def test_an_old_node_and_its_successor_are_one():
    ill, coming = node(1, NodeState.CORDONED, ailment=ailment()), node(2, NodeState.BOOTING)
    view = pool_view(spec(2), [ill, coming, node(3)], [repair(ill, RepairStep.BUYING, successor=coming.id)])
    assert bought(view) == []
    assert retired(view) == []


def test_spares_are_kept_beside_the_pool():
    wanted = spec(2, scaling=Scaling(least=2, most=2, spares=2))
    actions = bought(pool_view(wanted, [*nodes(2), node(3, NodeState.SPARE, spare=True)]))
    assert [action.spare for action in actions] == [True]


def test_what_others_bought_counts_against_no_limit():
    theirs = [node(number, origin=Origin.JOINED) for number in range(1, 6)]
    small = spec(2, scaling=Scaling(least=2, most=2))
    assert len(bought(pool_view(small, theirs))) == 2
    view = pool_view(small, [*theirs, node(6), node(7)])
    assert violations(view) == []
    assert retired(view) == []
    ill = node(8, NodeState.CORDONED, ailment=ailment())
    work = [repair(ill, RepairStep.CORDONING)]
    (step,) = [
        action
        for action in plan(pool_view(small, [*theirs, node(6), ill], work), NOW).actions
        if isinstance(action, AdvanceRepair)
    ]
    assert step.to is RepairStep.BUYING


def test_a_paused_pool_buys_nothing_and_gives_nothing_back():
    paused = PoolState("training", wanted=5, paused="a person")
    assert bought(pool_view(spec(5), nodes(2), state=paused)) == []
    assert retired(pool_view(spec(1), nodes(5), state=changed_wanted(paused, 1))) == []


def test_what_waits_because_its_pool_is_paused_says_so_and_how_it_goes_on():
    ill = node(1, NodeState.CORDONED, ailment=ailment())
    paused = PoolState("training", wanted=3, paused="a person")
    view = pool_view(spec(3), [ill, node(2)], [repair(ill, RepairStep.BUYING)], state=paused)
    holds = plan(view, NOW).holds
    assert [hold.subject for hold in holds] == [ill.id, "training"]
    assert {hold.hint for hold in holds} == {"navarch pool resume training"}
    assert plan(pool_view(spec(2), nodes(2), state=changed_wanted(paused, 2)), NOW).holds == ()


def changed_wanted(state: PoolState, wanted: int) -> PoolState:
    return replace(state, wanted=wanted)


def test_whom_nobody_will_miss_goes_first():
    members = [*nodes(3), node(4, NodeState.BOOTING)]
    heartbeats = {
        NodeId("node-0001"): NodeHeartbeat(heard=NOW, utilisation=90.0),
        NodeId("node-0002"): NodeHeartbeat(heard=NOW, utilisation=0.0, idle=later(-600)),
        NodeId("node-0003"): NodeHeartbeat(heard=NOW, utilisation=0.0, idle=later(-60)),
    }
    view = pool_view(spec(1), members, heartbeats=heartbeats)
    assert retired(view) == ["node-0004", "node-0002", "node-0003"]


def test_a_node_with_work_goes_after_those_without_whatever_its_gpus_do():
    heartbeats = {
        NodeId("node-0001"): NodeHeartbeat(heard=NOW, utilisation=0.0, idle=later(-6_000)),
        NodeId("node-0002"): NodeHeartbeat(heard=NOW, utilisation=0.0, idle=later(-60)),
    }
    members = [node(1, kube_name="gpu-1"), node(2, kube_name="gpu-2")]
    view = pool_view(spec(1), members, heartbeats=heartbeats, demand=Demand(busy={"gpu-1": 8}))
    assert retired(view) == ["node-0002"]
    unnamed = [replace(members[0], kube_name="", agent="gpu-1"), members[1]]
    assert retired(pool_view(spec(1), unnamed, heartbeats=heartbeats, demand=view.demand)) == ["node-0002"]


def test_a_node_that_a_person_keeps_is_not_retired():
    assert retired(pool_view(spec(1), [node(1, held=True), node(2, held=True)])) == []


AT_TEN = {"fake/us-west-2//gpu_8x_h100_sxm5": Availability(10.0)}


@pytest.mark.parametrize(
    ("spending", "code"),
    [
        (SpendLimits(per_hour=2), HoldReason.PURCHASES),
        (SpendLimits(total=20.0), HoldReason.SPEND),
    ],
)
def test_brakes_on_buying_say_which_they_are(spending: SpendLimits, code: HoldReason):
    members = [replace(one, place=replace(one.place, price=10.0)) for one in nodes(2)]
    purchases = [
        Purchase(IntentId(f"buy-{n}"), one.id, "training", one.place, later(-60), PurchaseState.BOUGHT)
        for n, one in enumerate(members)
    ]
    view = pool_view(spec(5, spending=spending), members, purchases=purchases, stock=AT_TEN)
    assert bought(view) == []
    assert holds(view) == [code]


def test_the_last_machine_that_is_bought_is_paid_for_too():
    assert len(bought(pool_view(spec(5, spending=SpendLimits(total=35.0)), [], stock=AT_TEN))) == 3
    assert holds(pool_view(spec(5, spending=SpendLimits(total=9.0)), [], stock=AT_TEN)) == [
        HoldReason.TOO_DEAR
    ]


def test_with_a_highest_spending_a_price_that_nobody_knows_is_too_high():
    view = pool_view(spec(5, spending=SpendLimits(total=1_000.0)), [])
    assert bought(view) == []
    assert holds(view) == [HoldReason.TOO_DEAR]


def test_machines_that_do_not_come_up_stop_buying_but_for_one_at_a_time():
    broken = {"training": FailureStreak("training", "boot", 3, later(-1))}
    assert holds(pool_view(spec(5), nodes(2), troubles=broken)) == [HoldReason.BREAKER]
    rested = {"training": FailureStreak("training", "boot", 3, later(-3_600))}
    assert len(bought(pool_view(spec(5), nodes(2), troubles=rested))) == 1


# Where.

OFFERS = (
    Offer("near", "t", ("r1",), ("r1a", "r1b"), priority=1),
    Offer("far", "t", ("r2",), priority=2, weight=2),
)


def where(view: PoolView, count: int = 1) -> list[str]:
    planned: list[Placement] = []
    for _ in range(count):
        found = choose_placement(view, planned, NOW)
        assert isinstance(found, Placement)
        planned.append(found)
    return [f"{place.provider}/{place.zone}".rstrip("/") for place in planned]


def shop(strategy: Strategy = Strategy.PRIORITY, **changes: object) -> PoolView:
    wanted = spec(5, offers=OFFERS, strategy=strategy)
    return changed(pool_view(wanted, []), **changes)


def test_priority_asks_the_first_and_spreads_over_its_zones():
    assert where(shop(), 3) == ["near/r1a", "near/r1b", "near/r1a"]


def test_round_robin_takes_turns_by_weight():
    assert sorted(place.partition("/")[0] for place in where(shop(Strategy.ROUND_ROBIN), 3)) == [
        "far",
        "far",
        "near",
    ]


def test_cost_takes_the_cheapest_whose_price_is_known():
    prices = {"far/r2//t": Availability(1.0), "near/r1/r1a/t": Availability(2.0)}
    assert where(shop(Strategy.COST, stock=prices)) == ["far"]


def test_availability_asks_where_there_is_some():
    stock = {
        "near/r1/r1a/t": Availability(available=False),
        "near/r1/r1b/t": Availability(available=False),
        "far/r2//t": Availability(),
    }
    assert where(shop(Strategy.AVAILABILITY, stock=stock)) == ["far"]


def test_a_place_that_refused_is_left_alone_and_then_asked_with_one():
    refused = {"near/r1/r1a/t": FailureStreak("near/r1/r1a/t", "no_capacity", 1, later(-1))}
    assert where(shop(troubles=refused), 2) == ["near/r1b", "near/r1b"]
    rested = {"near/r1/r1a/t": FailureStreak("near/r1/r1a/t", "no_capacity", 1, later(-600))}
    assert where(shop(troubles=rested), 3) == ["near/r1a", "near/r1b", "near/r1b"]


def test_a_place_that_another_pool_tries_again_is_left_to_it():
    rested = {"near/r1/r1a/t": FailureStreak("near/r1/r1a/t", "no_capacity", 1, later(-600))}
    tried = [Placement("near", "t", "r1", "r1a")]
    assert where(shop(troubles=rested, elsewhere=tried), 2) == ["near/r1b", "near/r1b"]


def test_a_place_without_spot_machines_may_have_others():
    spot, owned = Offer("near", "t", ("r1",), priority=1, spot=True), Offer("near", "t", ("r1",), priority=2)
    empty = {"near/r1//t/spot": FailureStreak("near/r1//t/spot", "no_capacity", 1, later(-1))}
    view = pool_view(spec(1, offers=(spot, owned)), [], troubles=empty)
    assert choose_placement(view, [], NOW) == Placement("near", "t", "r1")


@pytest.mark.parametrize("kind", ["no_capacity", "quota", "denied", "invalid", "no_answer", "boot"])
def test_each_further_refusal_doubles_the_pause_up_to_the_longest(kind: str):
    pauses = [backoff_until(FailureStreak("near", kind, times, NOW)).since(NOW) for times in range(1, 40)]
    assert all(after in (before * 2, pauses[-1]) for before, after in pairwise(pauses))
    assert pauses[0] < pauses[-1] <= Duration.of(hours=1)


def test_a_cloud_that_locks_us_out_is_not_asked_at_all():
    denied = {"near": FailureStreak("near", "denied", 1, later(-1))}
    assert where(shop(troubles=denied)) == ["far"]


def test_when_everybody_refused_the_reason_says_until_when():
    troubles = {name: FailureStreak(name, "denied", 1, later(-1)) for name in ("near", "far")}
    found = choose_placement(shop(troubles=troubles), [], NOW)
    assert isinstance(found, Hold)
    assert found.code is HoldReason.BACKING_OFF
    assert found.until is not None


def test_with_a_highest_price_a_price_that_nobody_knows_is_too_high():
    capped = changed(shop().spec, spending=SpendLimits(price=2.5))
    found = choose_placement(shop(spec=capped), [], NOW)
    assert isinstance(found, Hold)
    assert found.code is HoldReason.TOO_DEAR
    assert where(shop(spec=capped, stock={"far/r2//t": Availability(2.5)})) == ["far"]
