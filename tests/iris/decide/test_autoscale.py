"""How groups pass demand on, wait, try again, and what they tell those who wait."""

from dataclasses import replace

import pytest

from neorion.iris.decide import (
    PAUSE_MAX,
    Create,
    DeleteCause,
    UnmetDemand,
    after_trouble,
    autoscale,
    paused_until,
)
from neorion.iris.model import (
    GroupView,
    JobId,
    PendingCode,
    Placement,
    Resources,
    ScaleFailure,
    ScaleFailureKind,
    SliceId,
    SliceState,
    SliceView,
    WorkerShape,
)
from neorion.iris.testing import NOW, ago, placement, resources
from neorion.keel.base import Duration

H100 = resources("8", "64Gi", gpus=8, variant="H100")
PAIR = GroupView("pair", 1, 0, WorkerShape(H100, {"zone": "a"}, per_slice=2, slices=4))
SPARE = GroupView("spare", 2, 0, WorkerShape(H100, {"zone": "b"}, slices=4))
ONE_GPU = resources("1", gpus=1)


def wants(
    tasks: int, asks: Resources = ONE_GPU, where: Placement | None = None, since: str = "1h"
) -> UnmetDemand:
    return UnmetDemand(JobId("j"), asks, where or Placement(), tasks, ago(since))


def slice_in(state: SliceState, created: str, idle: str | None = None, name: str = "s") -> SliceView:
    ready = ago(created) if state is SliceState.READY else None
    return SliceView(SliceId(name), state, ago(created), ready, None if idle is None else ago(idle))


@pytest.mark.parametrize(("tasks", "slices"), [(1, 1), (16, 1), (17, 2), (64, 4), (65, 4)])
def test_tasks_are_packed_into_the_workers_of_a_slice(tasks: int, slices: int):
    assert autoscale([PAIR], [wants(tasks)], NOW).creates == [Create("pair", slices)]


def test_what_one_group_has_no_room_for_falls_to_the_next():
    plan = autoscale([SPARE, PAIR], [wants(80)], NOW)
    assert plan.creates == [Create("pair", 4), Create("spare", 2)]


def test_a_gang_is_bought_whole_or_not_at_all():
    whole = resources("1", gpus=8)
    assert autoscale([PAIR], [wants(2, whole, placement(gang="slice"))], NOW).creates == [Create("pair", 1)]
    refused = autoscale([PAIR], [wants(3, whole, placement(gang="slice"))], NOW)
    assert (refused.creates, refused.reasons[JobId("j")].code) == ([], PendingCode.NO_GROUP)
    assert autoscale([PAIR], [wants(8, whole, placement(gang="zone"))], NOW).creates == [Create("pair", 4)]
    assert autoscale([PAIR], [wants(9, whole, placement(gang="zone"))], NOW).creates == []
    assert autoscale([PAIR], [wants(2, whole, placement(gang="rack"))], NOW).creates == []


def test_a_gang_across_slices_is_bought_beside_what_is_there():
    whole, within = resources("1", gpus=8), placement(gang="zone")
    two = replace(PAIR, slices=[slice_in(SliceState.READY, "2h", idle="1h", name=f"s{n}") for n in range(2)])
    gang = wants(8, whole, within)._replace(there={"a": 4, "b": 7})
    assert autoscale([two], [gang], NOW).creates == [Create("pair", 2)]
    coming = replace(two, slices=[*two.slices, *(slice_in(SliceState.CREATING, "1s", name=n) for n in "cd")])
    assert autoscale([coming], [gang], NOW).creates == []
    assert autoscale([coming], [gang], NOW).reasons[JobId("j")].code is PendingCode.BOOTING


def test_a_gang_gets_all_slices_it_needs_although_others_use_some_of_them():
    """Only then can a place be held for it."""
    whole, within = resources("1", gpus=8), placement(gang="zone")
    busy = replace(PAIR, slices=[slice_in(SliceState.READY, "2h", name=f"s{n}") for n in range(2)])
    assert autoscale([busy], [wants(8, whole, within)], NOW).creates == [Create("pair", 2)]
    assert autoscale([busy], [wants(8, whole, within, since="1s")], NOW).creates == []
    coming = replace(
        busy, slices=[*busy.slices, *(slice_in(SliceState.CREATING, "1s", name=n) for n in "cd")]
    )
    assert autoscale([coming], [wants(8, whole, within)], NOW).creates == []
    roomy = replace(busy, shape=replace(PAIR.shape, slices=6))
    assert autoscale([roomy], [wants(8, whole, within)], NOW).creates == [Create("pair", 4)]


def test_a_gang_across_slices_is_begun_with_the_one_that_is_tried_after_a_trouble():
    gang = wants(4, resources("1", gpus=8), placement(gang="zone"))
    probing = replace(PAIR, trouble=ScaleFailure(ScaleFailureKind.FAILED, 1, ago("1m")))
    assert autoscale([probing], [gang], NOW).creates == [Create("pair", 1)]
    tried = replace(probing, slices=[slice_in(SliceState.CREATING, "10s")])
    assert autoscale([tried], [gang], NOW).creates == []
    whole = replace(SPARE, shape=replace(SPARE.shape, attributes={"zone": "a"}))
    assert autoscale([probing, whole], [gang], NOW).creates == [Create("spare", 4)]


def test_a_gang_that_no_group_could_hold_is_bought_from_several_that_share_its_attribute():
    gang = wants(10, resources("1", gpus=8), placement(gang="zone"))
    beside = replace(SPARE, shape=replace(SPARE.shape, attributes={"zone": "a"}))
    plan = autoscale([beside, PAIR], [gang], NOW)
    assert plan.creates == [Create("pair", 4), Create("spare", 2)]
    assert plan.reasons[JobId("j")].sentence == "It waits for 4 slices of pair to become ready."
    assert autoscale([beside, PAIR], [gang._replace(tasks=13)], NOW).creates == []
    assert autoscale([SPARE, PAIR], [gang], NOW).creates == [], "they have different zones"

    young = autoscale([beside, PAIR], [gang._replace(since=ago("20s"))], NOW)
    assert (young.creates, young.reasons[JobId("j")].code) == ([], PendingCode.GROUP_DELAY)
    coming = [
        replace(PAIR, slices=[slice_in(SliceState.CREATING, "1s", name=f"p{n}") for n in range(4)]),
        replace(beside, slices=[slice_in(SliceState.READY, "2h", idle="1h", name=f"s{n}") for n in range(2)]),
    ]
    partly = autoscale(coming, [gang._replace(there={"a": 2})], NOW)
    assert (partly.creates, partly.deletes) == ([], []), "what is there already is counted on"


def test_a_gang_over_several_groups_is_told_which_of_them_holds_it_up():
    gang = wants(10, resources("1", gpus=8), placement(gang="zone"))
    beside = replace(SPARE, shape=replace(SPARE.shape, attributes={"zone": "a"}))
    failing = replace(beside, trouble=ScaleFailure(ScaleFailureKind.QUOTA, 1, ago("1s")))
    plan = autoscale([PAIR, failing], [gang], NOW)
    assert (plan.creates, plan.wake_at) == ([], NOW + Duration.of(seconds=299))
    assert plan.reasons[JobId("j")].sentence == "The quota of spare is used up."
    probing = replace(beside, trouble=ScaleFailure(ScaleFailureKind.QUOTA, 1, ago("6m")))
    assert autoscale([PAIR, probing], [gang], NOW).creates == [Create("spare", 1)]
    busy = replace(beside, slices=[slice_in(SliceState.READY, "2h", name=f"s{n}") for n in range(3)])
    plan = autoscale([PAIR, busy], [gang], NOW)
    assert plan.creates == [Create("pair", 4)], "with all of it there, a place can be held"
    assert plan.reasons[JobId("j")].sentence.startswith("spare has 3 of at most 4 slices")


@pytest.mark.parametrize(
    ("short", "idle", "fails", "wake"),
    [("9m", "1m", [], Duration.of(minutes=1)), ("10m", "1m", ["s"], None), ("10m", None, [], None)],
    ids=["may come back", "did not come back", "the rest of it is in use"],
)
def test_a_slice_that_lacks_a_worker_for_too_long_has_failed(
    short: str, idle: str | None, fails: list[str], wake: Duration | None
):
    hollow = replace(slice_in(SliceState.READY, "5h", idle), short=ago(short))
    # The group may not grow: only this makes room for another.
    full = replace(PAIR, shape=replace(PAIR.shape, slices=1), slices=[hollow])
    plan = autoscale([full], [wants(1)], NOW)
    assert (plan.fails, plan.wake_at) == (fails, None if wake is None else NOW + wake)


def test_two_gangs_do_not_share_the_room_of_one_slice():
    gangs = [
        wants(2, resources("1", gpus=8), placement(gang="slice"))._replace(job=JobId(name)) for name in "ab"
    ]
    assert autoscale([PAIR], gangs, NOW).creates == [Create("pair", 2)]


def test_demand_waits_before_it_buys_and_says_so():
    plan = autoscale([PAIR], [wants(1, since="20s")], NOW)
    assert (plan.creates, plan.wake_at) == ([], NOW + Duration.of(seconds=40))
    assert plan.reasons[JobId("j")].sentence == "pair is scaled up when the job has waited 1m."


def test_slices_on_their_way_are_counted_and_named():
    coming = replace(PAIR, slices=[slice_in(SliceState.BOOTSTRAPPING, "5m")])
    plan = autoscale([coming], [wants(16)], NOW)
    assert (plan.creates, plan.reasons[JobId("j")].sentence) == (
        [],
        "It waits for 1 slice of pair to become ready.",
    )


def test_a_slice_that_does_not_boot_in_time_has_failed_and_is_replaced():
    late = replace(PAIR, slices=[slice_in(SliceState.CREATING, "41m")])
    plan = autoscale([late], [wants(1)], NOW)
    assert (plan.fails, plan.creates) == (["s"], [Create("pair", 1)])
    soon = replace(PAIR, slices=[slice_in(SliceState.CREATING, "39m")])
    assert autoscale([soon], [], NOW).wake_at == NOW + Duration.of(minutes=1)


def test_failed_slices_are_cleaned_up():
    failed = replace(PAIR, slices=[slice_in(SliceState.FAILED, "1m")])
    assert [each.cause for each in autoscale([failed], [], NOW).deletes] == [DeleteCause.FAILED]


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (ScaleFailureKind.QUOTA, "The quota of pair is used up."),
        (ScaleFailureKind.NO_CAPACITY, "The platform has no machines available for pair."),
        (
            ScaleFailureKind.FAILED,
            "pair failed to start 2 slices in a row; the next try follows after a pause.",
        ),
    ],
)
def test_a_troubled_group_passes_demand_on_and_says_why(kind: ScaleFailureKind, says: str):
    trouble = ScaleFailure(kind, 2, ago("1s"))
    plan = autoscale([replace(PAIR, trouble=trouble), SPARE], [wants(1)], NOW)
    assert plan.creates == [Create("spare", 1)]
    alone = autoscale([replace(PAIR, trouble=trouble)], [wants(1)], NOW)
    assert (alone.creates, alone.reasons[JobId("j")].sentence) == ([], says)
    assert alone.wake_at == paused_until(trouble)


def test_pauses_double_up_to_a_limit():
    pauses = [
        paused_until(ScaleFailure(ScaleFailureKind.FAILED, times, NOW)).since(NOW)
        for times in (1, 2, 3, 9, 10**6)
    ]
    assert pauses == [
        Duration.of(seconds=30),
        Duration.of(minutes=1),
        Duration.of(minutes=2),
        PAUSE_MAX,
        PAUSE_MAX,
    ]


def test_what_is_refused_together_counts_once():
    trouble = after_trouble(None, ScaleFailureKind.QUOTA, NOW)
    for _ in range(5):
        trouble = after_trouble(trouble, ScaleFailureKind.QUOTA, NOW)
    assert paused_until(trouble) == NOW + Duration.of(minutes=5)
    again = after_trouble(trouble, ScaleFailureKind.QUOTA, paused_until(trouble))
    assert (again.times, after_trouble(again, ScaleFailureKind.FAILED, NOW).times) == (2, 1)


def test_after_the_pause_one_slice_is_tried_and_the_rest_goes_elsewhere():
    probing = replace(PAIR, trouble=ScaleFailure(ScaleFailureKind.FAILED, 1, ago("1m")))
    assert autoscale([probing, SPARE], [wants(32)], NOW).creates == [Create("pair", 1), Create("spare", 2)]
    tried = replace(probing, slices=[slice_in(SliceState.CREATING, "10s")])
    assert autoscale([tried, SPARE], [wants(32)], NOW).creates == [Create("spare", 2)]


def test_at_its_most_a_group_says_so():
    full = replace(PAIR, slices=[slice_in(SliceState.READY, "1h", name=f"s{n}") for n in range(4)])
    plan = autoscale([full], [wants(1)], NOW)
    assert plan.reasons[JobId("j")].sentence == "pair has 4 of at most 4 slices, and the job needs more."


def test_a_new_slice_is_left_alone_for_its_grace_and_then_goes():
    young = replace(PAIR, slices=[slice_in(SliceState.READY, "20m", idle="20m")])
    assert autoscale([young], [], NOW).deletes == []
    assert autoscale([young], [], NOW).wake_at == NOW + Duration.of(minutes=10)
    (gone,) = autoscale([young], [], NOW + Duration.of(minutes=10)).deletes
    assert (gone.slice, gone.cause) == ("s", DeleteCause.IDLE)


def test_a_group_that_somebody_waits_for_gives_nothing_back():
    idle = replace(PAIR, slices=[slice_in(SliceState.READY, "2h", idle="1h")])
    assert len(autoscale([idle], [], NOW).deletes) == 1
    assert autoscale([idle], [wants(1)], NOW).deletes == []


def test_a_drained_slice_is_given_back_once_nothing_runs_there_although_somebody_waits():
    full = replace(PAIR, min_slices=1, shape=replace(PAIR.shape, slices=1))

    def drained(since: str, idle: str | None) -> GroupView:
        return replace(full, slices=[replace(slice_in(SliceState.READY, "2h", idle), drained=ago(since))])

    assert autoscale([drained("1h", None)], [wants(1)], NOW).deletes == [], "something runs on it"
    recent = autoscale([drained("9m", "1h")], [wants(1)], NOW)
    assert (recent.deletes, recent.wake_at) == ([], NOW + Duration.of(minutes=1))
    (gone,) = autoscale([drained("10m", "1h")], [wants(1)], NOW).deletes
    assert (gone.slice, gone.cause) == ("s", DeleteCause.DRAINED)
    assert len(autoscale([drained("1h", "10m")], [], NOW).deletes) == 1


def test_a_drained_slice_does_not_count_as_the_least():
    drained = replace(slice_in(SliceState.READY, "2h"), drained=ago("1m"))
    assert autoscale([replace(PAIR, min_slices=1, slices=[drained])], [], NOW).creates == [Create("pair", 1)]


def test_with_nothing_to_do_there_is_nothing_to_wake_for():
    busy = replace(PAIR, slices=[slice_in(SliceState.READY, "2h")])
    plan = autoscale([busy], [], NOW)
    assert (plan.creates, plan.fails, plan.deletes, plan.wake_at) == ([], [], [], None)
