"""Which place is chosen among those that would do, who goes first, who is pushed, and who waits for whom."""

from collections import Counter
from dataclasses import replace

import pytest

from neorion.iris.decide import RESERVE_AFTER, SchedulePlan, over_quota, schedule
from neorion.iris.model import (
    ClusterView,
    JobId,
    JobView,
    PendingCode,
    PriorityBand,
    Quota,
    Resources,
    RunningView,
    UserQuotas,
    WorkerId,
    WorkerView,
)
from neorion.iris.testing import NOW, ago, job, placement, resources, running, worker
from neorion.keel.base import Duration

CPU = resources("8", "32Gi")
GPU = resources("8", "32Gi", gpus=8, variant="H100")
ONE = resources("1")
ONE_GPU = resources("1", gpus=1)
WHOLE_GPU = resources("1", gpus=8)


def plan(workers: list[WorkerView], *jobs: JobView, runs: list[RunningView] | None = None) -> SchedulePlan:
    return schedule(ClusterView(workers, jobs, runs or []), NOW)


def places(found: SchedulePlan, name: str) -> list[str]:
    return [each.worker for each in found.assignments if each.job == name]


def test_a_task_without_gpus_leaves_gpu_workers_alone():
    assert places(plan([worker("gpu", GPU), worker("plain", CPU)], job("j", ONE)), "j") == ["plain"]


def test_a_task_without_gpus_takes_a_gpu_worker_if_there_is_no_other():
    assert places(plan([worker("gpu", GPU)], job("j", ONE)), "j") == ["gpu"]


def test_small_gpu_tasks_fill_what_is_begun_so_that_a_large_one_fits():
    begun = worker("begun", GPU, used=resources("1", gpus=3))
    found = plan([worker("a", GPU), begun], job("small", ONE_GPU, 5), job("large", WHOLE_GPU))
    assert places(found, "small") == ["begun"] * 5
    assert places(found, "large") == ["a"]


def test_a_gang_leaves_large_groups_whole():
    pair = [worker(f"pair-{n}", GPU, part_of="pair") for n in range(2)]
    four = [worker(f"four-{n}", GPU, part_of="four") for n in range(4)]
    gangs = placement(gang="slice")
    found = plan(
        [*four, *pair], job("two", WHOLE_GPU, 2, where=gangs), job("many", WHOLE_GPU, 4, where=gangs)
    )
    assert places(found, "two") == ["pair-0", "pair-1"]
    assert len(places(found, "many")) == 4


def test_tasks_of_a_gang_may_share_a_worker():
    found = plan([worker("a", GPU, part_of="s")], job("j", ONE_GPU, 8, where=placement(gang="slice")))
    assert places(found, "j") == ["a"] * 8


def test_preferred_constraints_order_the_workers_that_would_do():
    there = [worker(zone, CPU, attributes={"zone": zone}) for zone in "abc"]
    wish = placement("zone!=c", prefers=["zone=b"])
    assert places(plan(there, job("j", CPU, 3, where=wish)), "j") == ["b", "a"]


def test_every_value_that_meets_a_constraint_counts_and_so_does_having_none():
    zones = [worker(zone, CPU, attributes={"zone": zone}) for zone in "abc"]
    there = [*zones, worker("none", CPU)]
    assert places(plan(there, job("j", CPU, 4, where=placement("zone in a,b"))), "j") == ["a", "b"]
    assert places(plan(there, job("j", CPU, 4, where=placement("zone!=a"))), "j") == ["b", "c", "none"]
    assert places(plan(there, job("j", CPU, 4, where=placement("!zone"))), "j") == ["none"]


def test_a_task_runs_on_the_gpus_it_asks_for_and_on_any_if_it_does_not_say():
    there = [worker("a", resources("8", gpus=8, variant="A100")), worker("h", GPU)]
    picky = resources("1", gpus=8, variant="H100")
    assert places(plan(there, job("j", picky, 2)), "j") == ["h"]
    assert sorted(places(plan(there, job("j", WHOLE_GPU, 2)), "j")) == ["a", "h"]


def test_spread_tasks_go_where_the_fewest_of_their_job_are():
    there = [worker(f"{zone}{n}", CPU, attributes={"zone": zone}) for zone in "abc" for n in range(2)]
    spread = replace(
        job("j", ONE, 4, where=placement(spread="zone")), beside=[WorkerId("a0"), WorkerId("a1")]
    )
    zones = Counter(name[0] for name in places(plan(there, spread), "j"))
    assert zones == {"b": 2, "c": 2}


def test_tasks_that_ask_for_nothing_go_where_the_fewest_tasks_are():
    first, *others = (worker(name, CPU) for name in "abc")
    runs = [running(f"old-{n}", first, ONE) for n in range(2)]
    found = plan(
        [worker("gpu", GPU), first, *others], job("many", Resources(), 5), job("one", Resources()), runs=runs
    )
    assert Counter(places(found, "many") + places(found, "one")) == {"a": 1, "b": 3, "c": 2}


def test_tasks_that_ask_for_nothing_stay_with_the_workers_they_prefer():
    there = [worker(zone, CPU, attributes={"zone": zone}) for zone in "ab"]
    found = plan(there, job("j", Resources(), 4, where=placement(prefers=["zone=b"])))
    assert places(found, "j") == ["b"] * 4


def test_a_spread_gang_deals_its_tasks_over_the_workers_of_one_group():
    there = [worker(f"w{n}", GPU, part_of="s") for n in range(4)]
    found = plan(there, job("j", ONE_GPU, 4, where=placement(gang="slice", spread="worker")))
    assert sorted(places(found, "j")) == ["w0", "w1", "w2", "w3"]


def test_bands_go_first_and_then_age():
    jobs = [
        replace(job("young", CPU), submitted=ago("1m")),
        replace(job("old", CPU), submitted=ago("2m")),
        job("batch", CPU, band=PriorityBand.BATCH),
        job("production", CPU, band=PriorityBand.PRODUCTION),
    ]
    there = [worker("a", CPU), worker("b", CPU)]
    assert [each.job for each in plan(there, *jobs).assignments] == ["production", "old"]


def test_users_who_have_less_go_first():
    there = [worker("a", CPU, used=resources("4")), worker("b", CPU)]
    runs = [running("r", there[0], resources("4"), band=PriorityBand.INTERACTIVE)]
    jobs = [job("of-bob", resources("2"), 9, user="bob"), job("of-ada", resources("2"), 9)]
    found = plan(there, *jobs, runs=runs)
    assert (len(places(found, "of-ada")), len(places(found, "of-bob"))) == (4, 2)


def test_a_user_at_the_cap_is_told_so_and_others_go_on():
    view = ClusterView(
        [worker("a", CPU)],
        [job("j", ONE, 5), job("k", ONE, user="eve")],
        caps=UserQuotas(users={"ada": Quota(tasks=2)}),
    )
    found = schedule(view, NOW)
    assert (len(places(found, "j")), len(places(found, "k"))) == (2, 1)
    assert found.reasons[JobId("j")].sentence == "ada runs 2 tasks; the limit is 2 tasks at once."
    assert not found.demand


@pytest.mark.parametrize(
    ("cap", "fit", "says"),
    [
        (Quota(cpu_milli=5000), 2, "ada uses 4 cores; the limit is 5 cores at once."),
        (Quota(memory=3 * 2**30), 1, "ada uses 2Gi of memory; the limit is 3Gi at once."),
        (Quota(gpus=3), 3, "ada uses 3 GPUs; the limit is 3 GPUs at once."),
    ],
)
def test_a_cap_on_resources_leaves_room_for_what_fits_it(cap: Quota, fit: int, says: str):
    there = [worker("a", GPU), worker("b", GPU)]
    view = ClusterView(there, [job("j", resources("2", "2Gi", gpus=1), 8)], caps=UserQuotas(cap))
    found = schedule(view, NOW)
    assert len(places(found, "j")) == fit
    assert found.reasons[JobId("j")].sentence == says
    assert not found.demand


def test_a_gang_beyond_what_is_left_of_the_cap_waits_whole():
    there = [worker("a", GPU, part_of="s", used=ONE_GPU)]
    runs = [running("r", there[0], ONE_GPU)]
    gang = job("j", ONE_GPU, 4, user="bob", where=placement(gang="slice"))
    view = ClusterView(there, [gang], runs, UserQuotas(Quota(gpus=4)))
    found = schedule(view, NOW)
    assert not found.assignments
    assert found.reasons[JobId("j")].code is PendingCode.USER_GPUS


def test_the_autoscaler_is_asked_for_no_more_than_the_cap_leaves():
    found = schedule(ClusterView([], [job("j", ONE, 5)], caps=UserQuotas(Quota(tasks=2))), NOW)
    assert [each.tasks for each in found.demand] == [2]


def test_what_is_beyond_the_cap_for_ever_is_told_at_once():
    reason = over_quota(Quota(gpus=4), "ada", resources("1", gpus=8), 1)
    assert reason is not None
    assert reason.sentence == "It needs more GPUs at once than the 4 GPUs that ada may have."
    assert over_quota(Quota(gpus=8), "ada", resources("1", gpus=8), 1) is None


def test_the_lowest_band_is_stopped_first_and_the_youngest_of_it():
    there = [worker("a", CPU, used=CPU)]
    runs = [
        running("interactive", there[0], resources("2"), band=PriorityBand.INTERACTIVE, since="1m"),
        running("old", there[0], resources("2"), since="3h"),
        running("young", there[0], resources("2"), since="2h"),
        running("production", there[0], resources("2"), band=PriorityBand.PRODUCTION),
    ]
    wants = job("p", resources("2", "1Gi"), band=PriorityBand.PRODUCTION)
    free_memory = [replace(there[0], free=resources("0", "8Gi"))]
    assert [each.attempt for each in plan(free_memory, wants, runs=runs).preemptions] == ["young"]
    many = plan(free_memory, replace(wants, resources=resources("6", "1Gi")), runs=runs)
    assert sorted(each.attempt for each in many.preemptions) == ["interactive", "old", "young"]
    assert plan(free_memory, replace(wants, resources=resources("7", "1Gi")), runs=runs).preemptions == []


def test_batch_pushes_nobody():
    there = [worker("a", CPU, used=CPU)]
    assert (
        plan(there, job("b", ONE, band=PriorityBand.BATCH), runs=[running("r", there[0], CPU)]).preemptions
        == []
    )


def test_fewer_victims_are_preferred():
    small = worker("small", CPU, used=CPU)
    large = worker("large", CPU, used=CPU)
    runs = [running(f"s{n}", small, resources("1", "4Gi"), since=f"{n + 1}m") for n in range(8)]
    runs.append(running("one", large, CPU, since="9h"))
    found = plan([small, large], job("p", resources("8", "4Gi"), band=PriorityBand.PRODUCTION), runs=runs)
    assert [each.attempt for each in found.preemptions] == ["one"]


def test_a_gang_of_victims_goes_whole_and_what_it_frees_elsewhere_serves_the_next():
    there = [worker(name, GPU, used=GPU) for name in "ab"]
    runs = [running(f"r-{at.id}", at, GPU, of="gang") for at in there]
    jobs = [job(name, WHOLE_GPU, band=PriorityBand.PRODUCTION) for name in ("p", "q")]
    found = plan(there, *jobs, runs=runs)
    assert {each.attempt for each in found.preemptions} == {"r-a", "r-b"}
    assert {each.job for each in found.preemptions} == {"p"}
    assert sorted(each.worker for each in found.claims) == ["a", "b"]


def test_a_gang_that_pushes_gets_one_group_and_only_what_it_needs():
    there = [worker(f"{part}{n}", GPU, used=GPU, part_of=part) for part in "st" for n in range(2)]
    runs = [running(f"r-{at.id}", at, GPU) for at in there]
    gang = job("p", WHOLE_GPU, 2, band=PriorityBand.PRODUCTION, where=placement(gang="slice"))
    found = plan(there, gang, runs=runs)
    assert len({name.attempt[2] for name in found.preemptions}) == 1
    assert len(found.preemptions) == 2
    assert (
        found.reasons[JobId("p")].sentence == "It waits for 2 tasks of other jobs to stop, which it preempts."
    )


def test_lower_bands_do_not_take_what_a_claim_counts_on():
    there = [worker("a", GPU, used=resources("4", gpus=6))]
    stopping = replace(running("r", there[0], resources("4", gpus=6)), stopping=True)
    jobs = [job("p", WHOLE_GPU, band=PriorityBand.PRODUCTION), job("b", ONE_GPU, band=PriorityBand.BATCH)]
    found = plan(there, *jobs, runs=[stopping])
    assert (found.assignments, found.preemptions) == ([], [])
    assert [each.job for each in found.claims] == ["p"]


OLD = NOW - RESERVE_AFTER


def overdue(wants: JobView) -> JobView:
    return replace(wants, submitted=OLD)


def test_a_large_job_starts_in_the_end_although_small_ones_never_cease():
    """Small tasks keep coming and would fill every GPU that comes free."""
    there = [worker(f"w{n}", GPU, part_of=f"s{n // 2}") for n in range(4)]
    large = replace(job("large", WHOLE_GPU, 2, where=placement(gang="slice")), submitted=NOW)
    busy = [(at.id, minute) for minute, at in enumerate(there * 8)]
    for minute in range(200):
        busy = [(at, end) for at, end in busy if end > minute]
        counts = Counter(at for at, _ in busy)
        view = [replace(at, free=at.total - ONE_GPU.times(counts[at.id])) for at in there]
        now = NOW + Duration.of(minutes=minute)
        small = replace(job(f"small-{minute}", ONE_GPU, 32, user="eve"), submitted=now)
        found = schedule(ClusterView(view, [large, small]), now)
        if places(found, "large"):
            assert Duration.of(minutes=minute) >= RESERVE_AFTER, "it should have had to wait"
            return
        busy += [(each.worker, minute + 10 + each.task % 20) for each in found.assignments]
    raise AssertionError("small tasks starved the gang")


def test_who_holds_says_what_and_the_others_say_for_whom():
    there = [worker("a", GPU, used=ONE_GPU)]
    found = plan(there, overdue(job("large", WHOLE_GPU)), job("small", ONE_GPU, user="eve"))
    assert found.assignments == []
    assert [(hold.job, hold.workers) for hold in found.holds] == [("large", ("a",))]
    assert found.reasons[JobId("large")].code is PendingCode.HOLDING
    assert (
        found.reasons[JobId("small")].sentence
        == "The free room is reserved for large, which has waited longer."
    )


def test_one_place_per_band_is_held_and_higher_bands_may_use_it():
    there = [worker(name, GPU, used=ONE_GPU) for name in "ab"]
    jobs = [
        overdue(job("one", WHOLE_GPU)),
        overdue(job("two", WHOLE_GPU)),
        job("p", ONE_GPU, band=PriorityBand.PRODUCTION),
    ]
    found = plan(there, *jobs, job("small", ONE_GPU, 14, user="eve"))
    assert [hold.job for hold in found.holds] == ["one"]
    assert (len(places(found, "p")), len(places(found, "small"))) == (1, 6)


def test_nothing_is_held_for_what_would_not_fit_even_then():
    there = [worker("a", GPU, used=ONE_GPU)]
    found = plan(there, overdue(job("huge", resources("1", gpus=9))), job("small", ONE_GPU, user="eve"))
    assert (found.holds, places(found, "small")) == ([], ["a"])


def test_nothing_is_held_for_a_user_who_has_more_than_an_equal_part():
    there = [worker("a", GPU, used=resources("1", gpus=6))]
    mine = replace(running("r", there[0], resources("1", gpus=6), band=PriorityBand.INTERACTIVE), user="ada")
    found = plan(there, overdue(job("large", WHOLE_GPU)), job("small", ONE_GPU, user="eve"), runs=[mine])
    assert (found.holds, places(found, "small")) == ([], ["a"])


def test_the_next_look_is_when_the_next_job_may_hold():
    jobs = [replace(job(name, GPU), submitted=ago(since)) for name, since in (("a", "2m"), ("b", "9m"))]
    assert plan([], *jobs).wake_at == NOW + Duration.of(minutes=1)


def test_a_gang_waits_until_its_last_attempts_are_gone():
    there = [worker("a", GPU, used=ONE_GPU)]
    stopping = replace(running("r", there[0], ONE_GPU, of="j"), stopping=True)
    found = plan(there, job("j", ONE_GPU, 2, where=placement(gang="slice")), runs=[stopping])
    assert (found.assignments, found.demand) == ([], [])
    assert found.reasons[JobId("j")].code is PendingCode.SETTLING


def test_the_demand_of_a_gang_across_slices_says_what_is_there_of_it():
    there = [worker(f"w{n}", CPU, attributes={"zone": "a" if n < 2 else "b"}) for n in range(3)]
    gang = job("gang", CPU, 4, where=placement(gang="zone"))
    (demand,) = schedule(ClusterView(there, [gang]), NOW).demand
    assert (demand.tasks, demand.there) == (4, {"a": 2, "b": 1})
    (alone,) = schedule(ClusterView(there, [replace(gang, placement=placement(gang="slice"))]), NOW).demand
    assert alone.there == {}
