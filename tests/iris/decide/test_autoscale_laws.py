"""The laws of scaling, on a few groups in every state they can be in."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from neorion.iris.decide import DeleteCause, ScalePlan, UnmetDemand, autoscale, feasible, paused_until
from neorion.iris.model import GroupView, JobId, JobView, Placement, SliceId, SliceState, SliceView
from neorion.iris.testing import NOW, ago, groups, jobs
from neorion.keel.base import Duration

LAW = settings(deadline=None)
COMING = (SliceState.CREATING, SliceState.BOOTSTRAPPING)


def demand_of(waiting: list[JobView]) -> list[UnmetDemand]:
    return [
        UnmetDemand(each.id, each.resources, each.placement, len(each.waiting), each.submitted)
        for each in waiting
    ]


# None at all half of the time: a group that somebody waits for gives nothing back.
DEMAND = st.just(list[UnmetDemand]()) | jobs().map(demand_of)


def created(plan: ScalePlan, group: GroupView) -> int:
    return sum(each.slices for each in plan.creates if each.group == group.name)


def live(group: GroupView, plan: ScalePlan) -> list[SliceView]:
    """What serves or will serve, before anything is created or deleted."""
    serving = [each for each in group.slices if each.state in (*COMING, SliceState.READY)]
    return [each for each in serving if each.id not in plan.fails]


def idle_deletes(plan: ScalePlan, group: GroupView) -> list[SliceId]:
    return [
        each.slice for each in plan.deletes if each.group == group.name and each.cause is DeleteCause.IDLE
    ]


@LAW
@given(groups(), DEMAND)
def test_a_group_never_grows_beyond_its_most(there: list[GroupView], demand: list[UnmetDemand]):
    plan = autoscale(there, demand, NOW)
    for group in there:
        assert not created(plan, group) or len(group.slices) + created(plan, group) <= group.shape.slices


@LAW
@given(groups(), DEMAND)
def test_a_group_never_shrinks_below_its_least_and_grows_to_it_if_it_may(
    there: list[GroupView], demand: list[UnmetDemand]
):
    plan = autoscale(there, demand, NOW)
    for group in there:
        after = len(live(group, plan)) + created(plan, group) - len(idle_deletes(plan, group))
        if idle_deletes(plan, group):
            assert after >= group.min_slices, "an idle slice went that the least needs"
        may_grow = group.trouble is None and len(group.slices) + created(plan, group) < group.shape.slices
        assert after >= group.min_slices or not may_grow, "below its least although it may grow"


@LAW
@given(groups(), DEMAND, st.data())
def test_only_idle_or_failed_slices_are_deleted(
    there: list[GroupView], demand: list[UnmetDemand], data: st.DataObject
):
    names = [each.id for group in there for each in group.slices]
    promised = data.draw(st.sets(st.sampled_from(names))) if names else set[SliceId]()
    plan = autoscale(there, demand, NOW, promised)
    slices = {each.id: each for group in there for each in group.slices}
    for delete in plan.deletes:
        gone = slices[delete.slice]
        if delete.cause is DeleteCause.FAILED:
            assert gone.state is SliceState.FAILED
            continue
        assert gone.state is SliceState.READY
        assert gone.id not in promised, "deleted although somebody was promised a place on it"
        assert gone.idle is not None, "deleted while something runs on it"
        assert gone.ready is not None
        assert gone.idle + Duration.of(minutes=10) <= NOW, "deleted before it was idle for long enough"
        assert gone.ready + Duration.of(minutes=30) <= NOW, "deleted before it had a chance"


@LAW
@given(groups())
def test_the_longest_idle_go_first(there: list[GroupView]):
    plan = autoscale(there, [], NOW)
    for group in there:
        gone = idle_deletes(plan, group)
        since = {each.id: each.idle.ns for each in group.slices if each.idle is not None}
        grown = {
            each.id for each in group.slices if each.ready and each.ready + Duration.of(minutes=30) <= NOW
        }
        stay = [since[name] for name in since if name in grown and name not in gone]
        assert all(since[name] <= other for name in gone for other in stay)


@LAW
@given(groups(), jobs(), st.integers(1, 4))
def test_demand_is_served_by_the_first_group_that_suits_and_may_grow(
    there: list[GroupView], waiting: list[JobView], tasks: int
):
    """For tasks that need a worker each, with no slice on its way and no least to keep."""
    asks = waiting[0].resources
    quiet = [
        replace(
            group,
            min_slices=0,
            slices=[each for each in group.slices if each.state not in COMING],
            shape=replace(group.shape, total=replace(asks, gpu_variant=group.shape.total.gpu_variant)),
        )
        for group in there
    ]
    if not any((asks.cpu_milli, asks.memory, asks.disk, asks.gpus)):
        return
    where = replace(waiting[0].placement, gang="")
    plan = autoscale(quiet, [UnmetDemand(waiting[0].id, asks, where, tasks, ago("1h"))], NOW)
    left = tasks
    for group in sorted(quiet, key=lambda group: (group.priority, group.name)):
        suits = asks.fits(group.shape.total) and all(
            each.holds(group.shape.attributes) for each in where.constraints if each.required
        )
        may = max(0, group.shape.slices - len(group.slices))
        if group.trouble is not None:
            may = min(may, 1) if paused_until(group.trouble) <= NOW else 0
        takes = min(-(-left // group.shape.per_slice), may) if suits else 0
        assert created(plan, group) == takes
        left = max(0, left - takes * group.shape.per_slice)


@LAW
@given(groups(), jobs(), st.sampled_from(["slice", "worker", "zone"]), st.integers(1, 12))
def test_a_gang_is_bought_exactly_if_it_is_let_in(
    there: list[GroupView], waiting: list[JobView], gang: str, tasks: int
):
    """By groups that have nothing yet, and nothing against growing."""
    quiet = [replace(group, min_slices=0, slices=[], trouble=None) for group in there]
    asks, where = waiting[0].resources, Placement(gang=gang)
    refused = feasible(asks, where, tasks, [group.shape for group in quiet])
    plan = autoscale(quiet, [UnmetDemand(waiting[0].id, asks, where, tasks, ago("1h"))], NOW)
    assert bool(plan.creates) == (refused is None)


@LAW
@given(groups(), jobs(), st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_what_is_on_its_way_is_not_bought_again(
    there: list[GroupView], waiting: list[JobView], sizes: list[int]
):
    """For jobs that ask for the same, and with no failed slice to make way: what its going allows may be bought.

    Gangs ask for the same if they are as large, too: other ones may be packed anew on each look.
    """
    asks, where = waiting[0].resources, waiting[0].placement
    sizes = [sizes[0]] * len(sizes) if where.gang else sizes
    demand = [UnmetDemand(JobId(f"job-{n}"), asks, where, tasks, ago("1h")) for n, tasks in enumerate(sizes)]
    there = [replace(group, slices=[each for each in group.slices if serves(each)]) for group in there]
    assert autoscale(after(there, autoscale(there, demand, NOW)), demand, NOW).creates == []


@LAW
@given(groups(), DEMAND)
def test_buying_comes_to_an_end_within_what_is_asked_for(there: list[GroupView], demand: list[UnmetDemand]):
    """Different jobs may be packed anew on each look, but never into more than a slice per task."""
    coming = sum(each.state in COMING for group in there for each in group.slices)
    least = sum(group.min_slices for group in there)
    for _ in range(30):
        plan = autoscale(there, demand, NOW)
        if not plan.creates:
            break
        there = after(there, plan)
    else:
        raise AssertionError("still buying after 30 looks")
    bought = sum(each.id.startswith("new-") for group in there for each in group.slices)
    assert bought <= sum(each.tasks for each in demand) + least + coming


def serves(each: SliceView) -> bool:
    """Neither failed nor about to be: none of them is older than the 40 minutes a slice may take to boot."""
    return each.state is SliceState.READY or (each.state in COMING and each.created > ago("40m"))


def after(there: list[GroupView], plan: ScalePlan) -> list[GroupView]:
    """The groups when what was decided has begun."""
    gone = {each.slice for each in plan.deletes}
    found: list[GroupView] = []
    for group in there:
        stay = [each for each in group.slices if each.id not in gone]
        new = [
            SliceView(SliceId(f"new-{group.name}-{len(stay)}-{n}"), SliceState.CREATING, NOW)
            for n in range(created(plan, group))
        ]
        found.append(replace(group, slices=[*stay, *new]))
    return found


@LAW
@given(groups(), DEMAND)
def test_no_more_is_bought_than_demand_and_the_least_ask_for(
    there: list[GroupView], demand: list[UnmetDemand]
):
    plan = autoscale(there, demand, NOW)
    least = sum(group.min_slices for group in there)
    assert sum(each.slices for each in plan.creates) <= sum(each.tasks for each in demand) + least


@LAW
@given(groups(), DEMAND)
def test_a_troubled_group_pauses_and_then_tries_one_slice(there: list[GroupView], demand: list[UnmetDemand]):
    plan = autoscale(there, demand, NOW)
    for group in there:
        if group.trouble is None:
            continue
        coming = sum(each.state in COMING for each in live(group, plan))
        paused = paused_until(group.trouble) > NOW
        assert created(plan, group) <= (0 if paused or coming else 1)


@LAW
@given(groups(), DEMAND)
def test_demand_that_is_too_young_buys_nothing(there: list[GroupView], demand: list[UnmetDemand]):
    young = [each._replace(since=ago("59s")) for each in demand]
    least = autoscale(there, [], NOW)
    plan = autoscale(there, young, NOW)
    assert plan.creates == least.creates


@LAW
@given(groups(), DEMAND)
def test_all_demand_is_told_what_it_waits_for(there: list[GroupView], demand: list[UnmetDemand]):
    plan = autoscale(there, demand, NOW)
    assert set(plan.reasons) == {each.job for each in demand}
    assert all(reason.sentence.endswith(".") for reason in plan.reasons.values())


@LAW
@given(groups(), DEMAND, st.data())
def test_the_same_groups_in_any_order_give_the_same_plan(
    there: list[GroupView], demand: list[UnmetDemand], data: st.DataObject
):
    def mixed(view: GroupView) -> GroupView:
        shuffled: Sequence[SliceView] = data.draw(st.permutations(list(view.slices)))
        return replace(view, slices=shuffled)

    order = [mixed(view) for view in data.draw(st.permutations(there))]
    plan, other = autoscale(there, demand, NOW), autoscale(order, demand, NOW)
    assert (plan.creates, plan.reasons, plan.wake_at) == (other.creates, other.reasons, other.wake_at)
    assert sorted(plan.fails) == sorted(other.fails)
    assert {each.slice for each in plan.deletes} == {each.slice for each in other.deletes}
