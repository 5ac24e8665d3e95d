"""Autoscalers, and the brakes between what they ask for and what is done."""

from collections import Counter
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.keel.base import Duration, Instant
from neorion.navarch.decide.autoscale import AutoscalerInput, advise
from neorion.navarch.decide.gpu_packing import filled, pack
from neorion.navarch.decide.pool_size import target
from neorion.navarch.model import Demand, DesiredSize, Gang, PoolState
from neorion.navarch.model.spec import (
    Autoscaler,
    CompositeAutoscaler,
    CompositeMode,
    PredictiveAutoscaler,
    QueueAutoscaler,
    ReactiveAutoscaler,
    Scaling,
    ScheduledAutoscaler,
    ScheduleSpan,
    Window,
)
from neorion.navarch.testing import NOW, later, nodes, pool_view, spec


def size(
    scaler: Autoscaler, have: int = 5, demand: Demand | None = None, least: int = 2, most: int = 10
) -> int | None:
    found = advise(scaler, AutoscalerInput(have, least, most, demand or Demand(), NOW, gpus_per_node=8))
    return found.size if found else None


@pytest.mark.parametrize(("used", "wants"), [(81, 6), (80, 5), (50, 5), (20, 5), (19, 4)])
def test_reactive_follows_utilisation_one_node_at_a_time(used: float, wants: int):
    assert size(ReactiveAutoscaler(80, 20), demand=Demand(utilisation=used)) == wants


@pytest.mark.parametrize(("pending", "running", "wants"), [(0, 0, 2), (17, 0, 3), (8, 8, 2), (1_000, 0, 10)])
def test_queue_has_room_for_every_job(pending: int, running: int, wants: int):
    assert size(QueueAutoscaler(8), demand=Demand(pending=pending, running=running)) == wants


def work(*waiting: Gang, busy: tuple[int, ...] = ()) -> Demand:
    named = {f"n{number}": gpus for number, gpus in enumerate(busy)}
    return Demand(pending=sum(map(len, waiting)), running=len(busy), busy=named, waiting=waiting)


@pytest.mark.parametrize(
    ("demand", "wants"),
    [
        # Five of five GPUs: no two fit on a node of eight.
        (work((5,), (5,), (5,), (5,), (5,)), 5),
        (work((4,), (4,), (4,), (4,), (1,)), 3),
        # What waits takes what is left over beside what runs.
        (work((2,), (2,), (4,), busy=(4, 4)), 2),
        (work((8,), (2,), busy=(6, 6)), 3),
        (work((16,)), 2),
    ],
)
def test_queue_counts_the_nodes_that_gpus_fill(demand: Demand, wants: int):
    assert size(QueueAutoscaler(8), demand=demand) == wants


def test_a_queue_that_is_empty_takes_no_node_from_work_that_runs():
    assert size(QueueAutoscaler(8), have=5, demand=work(busy=(8, 8, 8, 8, 1))) == 5


@pytest.mark.parametrize(
    ("demand", "wants"),
    [
        (work((8,) * 7), 7),
        # Two gangs, and what runs beside them.
        (work((5,) * 3, (5,) * 3, busy=(8,)), 7),
        # The second would get a part of its nodes only.
        (work((8,) * 6, (8,) * 5), 6),
        (work((8,) * 6, busy=(8,) * 5), 5),
        # Too large for the pool, and no other work waits for that.
        (work((8,) * 11, (8,), (8,), (8,)), 3),
        (work((1,) * 88), 2),
        (work((16, 16), (8,) * 4), 4),
        # It waits no longer for a stream of small work.
        (work(*[(8,)] * 20, (8,) * 10), 10),
    ],
)
def test_a_gang_brings_all_of_its_nodes_or_none(demand: Demand, wants: int):
    assert size(QueueAutoscaler(8), demand=demand) == wants


def test_a_gang_that_finds_no_room_is_told_of():
    advice = advise(QueueAutoscaler(8), AutoscalerInput(2, 2, 10, work((8,) * 11), NOW, gpus_per_node=8))
    assert advice is not None
    assert "a gang with 88 GPUs finds no room beside it on 10 nodes" in advice.why


@pytest.mark.parametrize(("demand", "wants"), [(work((8,) * 24), 3), (work((8,), busy=(8,) * 9), 9)])
def test_where_nobody_knows_how_many_gpus_a_node_has_jobs_and_busy_nodes_count(demand: Demand, wants: int):
    advice = advise(QueueAutoscaler(8), AutoscalerInput(2, 2, 10, demand, NOW))
    assert advice is not None
    assert advice.size == wants


def test_work_that_runs_on_nobody_knows_which_nodes_fills_as_few_as_it_can():
    assert sorted(filled([4, 1, 8, 4], 8)) == [1, 8, 8]


GANGS = st.lists(st.lists(st.integers(0, 10), min_size=1, max_size=6).map(tuple), max_size=12)


@given(st.lists(st.integers(1, 8), max_size=6), GANGS)
def test_packing_leaves_room_for_all_that_is_placed(busy: list[int], waiting: list[Gang]):
    found = pack(busy, waiting, 8, most=6)
    assert len(busy) <= found.nodes
    assert found.gpus <= 8 * found.nodes
    pods = len(busy) + sum(map(len, waiting)) - sum(map(len, found.homeless))
    assert found.nodes <= pods
    # Only what is alone may ask for more nodes than there may be: gangs never do.
    gangs = [gang for gang in waiting if len(gang) > 1]
    assert pack(busy, gangs, 8, most=6).nodes <= max(6, len(busy))
    # Those that found no room cost no nodes.
    kept = Counter(waiting) - Counter(found.homeless)
    assert pack(busy, list(kept.elements()), 8, most=10**6).nodes == found.nodes


@pytest.mark.parametrize(
    "scaler",
    [
        ReactiveAutoscaler(),
        QueueAutoscaler(),
        PredictiveAutoscaler(),
        CompositeAutoscaler(CompositeMode.MAX, (ReactiveAutoscaler(), QueueAutoscaler())),
    ],
)
def test_not_knowing_is_not_the_same_as_nothing(scaler: Autoscaler):
    assert size(scaler) is None


def test_a_schedule_narrows_the_limits_in_its_own_time_zone():
    # NOW is Thursday 00:00 in UTC, which is Thursday 09:00 in Tokyo.
    hours = Window(frozenset({3}), 9 * 60, 18 * 60, ZoneInfo("Asia/Tokyo"))
    busy = ScheduledAutoscaler((ScheduleSpan(hours, 8, 20),))
    assert size(busy) == 8
    quiet = ScheduledAutoscaler((ScheduleSpan(replace(hours, zone=ZoneInfo("UTC")), 8, 20),))
    assert size(quiet) is None


def test_a_schedule_cannot_ask_for_more_than_the_pool_may_have():
    always = Window(frozenset(range(7)), 0, 24 * 60, ZoneInfo("UTC"))
    assert size(ScheduledAutoscaler((ScheduleSpan(always, 50, 100),))) == 10


def test_predictive_follows_the_trend_before_the_threshold_is_reached():
    rising = Demand(utilisation=70, samples=(40.0, 50.0, 60.0, 70.0))
    assert size(PredictiveAutoscaler(lookback=4), demand=rising) == 8
    flat = Demand(utilisation=70, samples=(70.0,) * 4)
    assert size(PredictiveAutoscaler(lookback=4, fallback=ReactiveAutoscaler()), demand=flat) == 5


@pytest.mark.parametrize(
    ("mode", "wants"), [(CompositeMode.MAX, 8), (CompositeMode.MIN, 4), (CompositeMode.AVG, 6)]
)
def test_composite_joins_its_parts(mode: CompositeMode, wants: int):
    both = CompositeAutoscaler(mode, (ReactiveAutoscaler(), QueueAutoscaler(8)))
    assert size(both, demand=Demand(utilisation=10, pending=64, running=0)) == wants


@given(st.floats(0, 100), st.integers(0, 500), st.integers(0, 30), st.sampled_from(CompositeMode))
def test_whatever_is_asked_lies_within_the_limits(used: float, pending: int, have: int, mode: CompositeMode):
    wanted = size(
        CompositeAutoscaler(mode, (ReactiveAutoscaler(), QueueAutoscaler(8))),
        have,
        Demand(utilisation=used, pending=pending, running=0),
    )
    assert wanted is not None
    assert 2 <= wanted <= 10


def brakes(
    state: PoolState,
    *,
    wishes: tuple[DesiredSize, ...] = (),
    used: float = 10,
    started: Instant | None = None,
    **scaling: object,
) -> int:
    limits = replace(Scaling(2, 20, autoscaler=ReactiveAutoscaler()), **scaling)
    view = pool_view(
        spec(2, scaling=limits),
        nodes(10),
        state=state,
        demand=Demand(utilisation=used),
        wishes=wishes,
        started=started,
    )
    return target(view, NOW).size


def test_nothing_changes_while_the_last_change_cools_down():
    just = PoolState("training", wanted=10, scaled=later(-60))
    assert brakes(just, used=90) == 10
    assert brakes(just, used=90, cooldown=Duration.of(seconds=30)) == 11


def test_a_pool_shrinks_only_after_less_was_enough_for_a_while():
    state = PoolState("training", wanted=10)
    assert brakes(state) == 10
    assert brakes(state, wishes=(DesiredSize(later(-60), 10),)) == 10
    assert brakes(state, wishes=(DesiredSize(later(-600), 10), DesiredSize(later(-60), 9))) == 9


def test_a_pool_does_not_shrink_because_its_control_plane_started_anew():
    state, asked = PoolState("training", wanted=10), (DesiredSize(later(-30), 9),)
    assert brakes(state, wishes=asked, started=later(-60)) == 10
    assert brakes(state, wishes=asked, started=later(-600)) == 9
    assert brakes(state, wishes=asked, started=later(-60), used=90) == 11


def test_one_change_is_no_larger_than_a_step():
    state = PoolState("training", wanted=2)
    view = pool_view(
        spec(2, scaling=Scaling(2, 100, step_up=5, autoscaler=QueueAutoscaler(1))),
        nodes(2),
        state=state,
        demand=Demand(pending=50, running=0),
    )
    assert target(view, NOW).size == 7


def test_without_an_autoscaler_a_pool_has_what_a_person_asked_for():
    view = pool_view(spec(2, scaling=Scaling(2, 20)), nodes(2), state=PoolState("training", wanted=7))
    assert target(view, NOW).size == 7
