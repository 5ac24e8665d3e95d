"""The laws of a pass, on clusters small enough that everything meets everything."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from neorion.iris.decide import Assignment, SchedulePlan, schedule
from neorion.iris.model import ClusterView, JobView, PendingCode, Quota, Resources, WorkerView
from neorion.iris.testing import NOW, clusters, job, workers

LAW = settings(deadline=None)
NOT_FOR_ROOM = (
    PendingCode.USER_CAP,
    PendingCode.USER_CPU,
    PendingCode.USER_MEMORY,
    PendingCode.USER_GPUS,
    PendingCode.SETTLING,
)


def amounts(resources: Resources) -> list[int]:
    return [resources.cpu_milli, resources.memory, resources.disk, resources.gpus]


def group(at: WorkerView, key: str) -> str | None:
    return {"slice": at.slice, "worker": at.id}.get(key, at.attributes.get(key))


def may_run(each: JobView, at: WorkerView) -> bool:
    wants = each.resources
    variant = not wants.gpus or wants.gpu_variant in ("", at.total.gpu_variant)
    return variant and all(c.holds(at.attributes) for c in each.placement.constraints if c.required)


def times(wants: Resources, there: list[int], most: int) -> int:
    for tasks in range(most, 0, -1):
        if all(need * tasks <= have for need, have in zip(amounts(wants), there, strict=True)):
            return tasks
    return 0


class World:
    """A view and its plan, with the sums that the laws speak of."""

    def __init__(self, view: ClusterView, plan: SchedulePlan) -> None:
        self.view = view
        self.plan = plan
        self.workers = {each.id: each for each in view.workers}
        self.jobs = {each.id: each for each in view.jobs}
        self.taken = self._sum(plan.assignments)
        self.claimed = self._sum(plan.claims)
        stopped = {each.attempt for each in plan.preemptions}
        self.victims = [run for run in view.running if run.attempt in stopped]
        self.freeing: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for run in view.running:
            if run.stopping or run.attempt in stopped:
                add(self.freeing[run.worker], run.resources)

    def _sum(self, assignments: Sequence[Assignment]) -> dict[str, list[int]]:
        sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for each in assignments:
            add(sums[each.worker], self.jobs[each.job].resources)
        return sums

    def left(self, each: JobView) -> int:
        """Its tasks with neither a place nor a claim."""
        placed = [*self.plan.assignments, *self.plan.claims]
        return len(each.waiting) - sum(one.job == each.id for one in placed)

    def room(self, at: WorkerView) -> list[int]:
        """What is free for others once claims have taken from what is being freed first."""
        columns = zip(
            amounts(at.free), self.taken[at.id], self.claimed[at.id], self.freeing[at.id], strict=True
        )
        return [free - taken - max(0, claimed - freeing) for free, taken, claimed, freeing in columns]

    def held_against(self, each: JobView) -> set[str]:
        return {
            held for hold in self.plan.holds if self.jobs[hold.job].band <= each.band for held in hold.workers
        }


def add(to: list[int], more: Resources) -> None:
    for dimension, amount in enumerate(amounts(more)):
        to[dimension] += amount


def planned(view: ClusterView) -> World:
    return World(view, schedule(view, NOW))


@LAW
@given(clusters())
def test_no_worker_is_given_more_than_it_has(view: ClusterView):
    world = planned(view)
    for at in view.workers:
        assert all(amount >= 0 for amount in world.room(at)), "assigned and claimed more than there is"
        assert all(taken <= free for taken, free in zip(world.taken[at.id], amounts(at.free), strict=True)), (
            "assigned what is not free yet"
        )


@LAW
@given(clusters())
def test_a_task_is_placed_at_most_once_and_only_if_it_waits(view: ClusterView):
    world = planned(view)
    placed = [(one.job, one.task) for one in (*world.plan.assignments, *world.plan.claims)]
    assert len(set(placed)) == len(placed)
    assert all(task in world.jobs[name].waiting for name, task in placed)


@LAW
@given(clusters())
def test_a_gang_is_placed_whole_or_not_at_all_and_in_one_group(view: ClusterView):
    world = planned(view)
    for each in view.jobs:
        if not each.placement.gang:
            continue
        for places in (world.plan.assignments, world.plan.claims):
            here = [one for one in places if one.job == each.id]
            assert len(here) in (0, len(each.waiting)), "a part of a gang"
            groups = {group(world.workers[one.worker], each.placement.gang) for one in here}
            assert len(groups) <= 1, "a gang across groups"
            assert None not in groups, "a gang on workers without its attribute"


@LAW
@given(clusters())
def test_a_gang_does_not_start_while_its_last_attempts_hold_places(view: ClusterView):
    world = planned(view)
    settling = {run.job for run in view.running if run.gang}
    for one in (*world.plan.assignments, *world.plan.claims):
        assert not (world.jobs[one.job].placement.gang and one.job in settling)


@LAW
@given(clusters())
def test_required_constraints_and_gpu_variants_hold(view: ClusterView):
    world = planned(view)
    for one in (*world.plan.assignments, *world.plan.claims):
        assert may_run(world.jobs[one.job], world.workers[one.worker])


@LAW
@given(clusters())
def test_no_user_has_more_than_the_cap_of_anything(view: ClusterView):
    world = planned(view)
    placed = [world.jobs[one.job] for one in (*world.plan.assignments, *world.plan.claims)]
    for user in {each.user for each in placed}:
        cap = view.caps.of(user)
        gets = [each.resources for each in placed if each.user == user]
        has = [*gets, *(run.resources for run in view.running if run.user == user)]
        # What a user had too much of before may stay; nothing is added to it.
        for limit, adds, sums in (
            (cap.tasks, len(gets), len(has)),
            (cap.cpu_milli, sum(one.cpu_milli for one in gets), sum(one.cpu_milli for one in has)),
            (cap.memory, sum(one.memory for one in gets), sum(one.memory for one in has)),
            (cap.gpus, sum(one.gpus for one in gets), sum(one.gpus for one in has)),
        ):
            assert not limit or not adds or sums <= limit


@LAW
@given(clusters())
def test_nobody_asks_for_workers_that_the_cap_would_leave_idle(view: ClusterView):
    world = planned(view)
    for user, cap in view.caps.users.items():
        asked = sum(each.tasks for each in world.plan.demand if world.jobs[each.job].user == user)
        assert not cap.tasks or asked <= cap.tasks


@LAW
@given(clusters())
def test_priority_is_never_inverted_between_equal_shapes(view: ClusterView):
    world = planned(view)
    started = {one.job for one in world.plan.assignments}
    for low in view.jobs:
        for high in view.jobs:
            equal = (low.resources, low.placement) == (high.resources, high.placement)
            if not equal or low.band <= high.band or low.id not in started:
                continue
            if high.placement.gang and len(high.waiting) > len(low.waiting):
                continue
            reason = world.plan.reasons.get(high.id)
            assert reason is None or reason.code in NOT_FOR_ROOM, (
                "a lower band started beside an equal that waits"
            )


@LAW
@given(clusters())
def test_only_lower_bands_are_preempted_and_nobody_twice(view: ClusterView):
    world = planned(view)
    by_attempt = {run.attempt: run for run in view.running}
    stopped = [each.attempt for each in world.plan.preemptions]
    assert len(set(stopped)) == len(stopped)
    for each in world.plan.preemptions:
        assert by_attempt[each.attempt].band > world.jobs[each.job].band
        assert not by_attempt[each.attempt].stopping


@LAW
@given(clusters())
def test_who_pushes_gets_a_place_in_what_is_freed(view: ClusterView):
    world = planned(view)
    claiming = {one.job for one in world.plan.claims}
    assert {each.job for each in world.plan.preemptions} <= claiming, "somebody was stopped for nothing"
    for at in view.workers:
        sums = zip(
            amounts(at.free), world.freeing[at.id], world.taken[at.id], world.claimed[at.id], strict=True
        )
        assert all(free + freeing >= taken + claimed for free, freeing, taken, claimed in sums)


@LAW
@given(clusters())
def test_a_gang_is_preempted_whole(view: ClusterView):
    world = planned(view)
    stopped = {each.attempt for each in world.plan.preemptions}
    for run in world.victims:
        if run.gang:
            assert all(
                other.attempt in stopped or other.stopping for other in view.running if other.job == run.job
            )


@LAW
@given(clusters(capped=False), st.data())
def test_one_pusher_stops_nobody_it_could_do_without(view: ClusterView, data: st.DataObject):
    if not view.jobs:
        return
    only = data.draw(st.sampled_from(list(view.jobs)))
    alone = replace(view, jobs=[only if only.placement.gang else replace(only, waiting=[0])])
    world = planned(alone)
    for spared in {run.job if run.gang else run.attempt for run in world.victims}:
        others = [run for run in world.victims if (run.job if run.gang else run.attempt) != spared]
        kept = {run.attempt for run in others}
        room: dict[str, list[int]] = {at.id: amounts(at.free) for at in view.workers}
        for run in view.running:
            if (run.stopping or run.attempt in kept) and run.worker in room:
                add(room[run.worker], run.resources)
        spots = {one.worker for one in world.plan.claims}
        places = [
            at
            for at in view.workers
            if may_run(only, at)
            and (at.id in spots if not only.placement.gang else _same_group(world, only, at))
        ]
        fits = sum(times(only.resources, room[at.id], len(only.waiting)) for at in places)
        assert fits < len(alone.jobs[0].waiting), "it would have fitted without stopping this one"


def _same_group(world: World, only: JobView, at: WorkerView) -> bool:
    claimed = world.workers[world.plan.claims[0].worker]
    return group(at, only.placement.gang) == group(claimed, only.placement.gang)


@LAW
@given(clusters(capped=False), st.data())
def test_nobody_is_stopped_twice_for_one_need(view: ClusterView, data: st.DataObject):
    if not view.jobs:
        return
    only = data.draw(st.sampled_from(list(view.jobs)))
    view = replace(view, jobs=[only if only.placement.gang else replace(only, waiting=[0])])
    stopped = {each.attempt for each in schedule(view, NOW).preemptions}
    later = [replace(run, stopping=run.stopping or run.attempt in stopped) for run in view.running]
    assert schedule(replace(view, running=later), NOW).preemptions == []


@LAW
@given(clusters())
def test_nothing_waits_beside_room_that_nobody_keeps(view: ClusterView):
    world = planned(view)
    for each in view.jobs:
        reason = world.plan.reasons.get(each.id)
        if not world.left(each) or (reason is not None and reason.code in NOT_FOR_ROOM):
            continue
        held = world.held_against(each)
        open_to = [at for at in view.workers if at.id not in held and may_run(each, at)]
        rooms: dict[str | None, int] = defaultdict(int)
        for at in open_to:
            value = group(at, each.placement.gang) if each.placement.gang else at.id
            rooms[value] += times(each.resources, world.room(at), len(each.waiting))
        needs = len(each.waiting) if each.placement.gang else 1
        assert all(room < needs for value, room in rooms.items() if value is not None)


@LAW
@given(clusters())
def test_every_job_that_waits_says_why_and_no_other_does(view: ClusterView):
    world = planned(view)
    started = Counter(one.job for one in world.plan.assignments)
    waits = {each.id for each in view.jobs if started[each.id] < len(each.waiting)}
    assert set(world.plan.reasons) == waits
    assert all(reason.sentence.endswith(".") for reason in world.plan.reasons.values())


@LAW
@given(clusters())
def test_demand_is_what_found_neither_place_nor_claim(view: ClusterView):
    world = planned(view)
    demand = {each.job: each.tasks for each in world.plan.demand}
    for each in view.jobs:
        reason = world.plan.reasons.get(each.id)
        limited = reason is not None and reason.code in NOT_FOR_ROOM
        wants = 0 if limited else world.left(each)
        # A cap may leave less than is wanted.
        assert demand.get(each.id, 0) == wants or (view.caps.of(each.user) != Quota() and wants)


@LAW
@given(clusters())
def test_what_is_there_of_a_gang_is_never_all_of_it(view: ClusterView):
    for each in schedule(view, NOW).demand:
        assert all(0 < room < each.tasks for room in each.there.values())


@LAW
@given(clusters())
def test_slices_with_a_promise_are_named(view: ClusterView):
    world = planned(view)
    named = {one.worker for one in (*world.plan.assignments, *world.plan.claims)}
    named |= {held for hold in world.plan.holds for held in hold.workers}
    assert world.plan.promised == {world.workers[name].slice for name in named}


@LAW
@given(clusters(), st.data())
def test_the_same_cluster_in_any_order_gives_the_same_plan(view: ClusterView, data: st.DataObject):
    mixed = ClusterView(
        [
            replace(at, attributes=dict(reversed(list(at.attributes.items()))))
            for at in data.draw(st.permutations(list(view.workers)))
        ],
        data.draw(st.permutations(list(view.jobs))),
        data.draw(st.permutations(list(view.running))),
        replace(view.caps, users=dict(reversed(list(view.caps.users.items())))),
    )
    assert schedule(mixed, NOW) == schedule(view, NOW)


@LAW
@given(
    workers(),
    st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=3), min_size=2, max_size=3),
)
def test_users_with_equal_demand_end_at_most_one_task_apart(
    there: list[WorkerView], demands: list[list[int]]
):
    """Each user asks for the same number of the same tasks, in jobs of different sizes."""
    most = max(sum(sizes) for sizes in demands)
    asks = Resources(1000, 1)
    waiting = [
        job(f"{user}-{number}", asks, tasks, user=f"user-{user}")
        for user, sizes in enumerate(demands)
        for number, tasks in enumerate([*sizes, most - sum(sizes)])
    ]
    started = Counter(one.job.split("-")[0] for one in schedule(ClusterView(there, waiting), NOW).assignments)
    counts = [started[str(user)] for user in range(len(demands))]
    assert max(counts) - min(counts) <= 1
