"""What an end costs, and what follows from it."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neorion.iris.decide import (
    Ending,
    Rest,
    Rules,
    Spent,
    TaskCounts,
    Verdict,
    after_end,
    after_wait,
    cause_of,
    job_state,
)
from neorion.iris.model import JOB, TASK, Budget, Cause, EndKind, JobState, StopCause, TaskState

LAW = settings(deadline=None)
WELL = Ending(EndKind.EXIT)
CRASH = Ending(EndKind.EXIT, code=1)
LOST = Ending(EndKind.LOST)


def verdict(rules: Rules, spent: Spent, counts: TaskCounts, ending: Ending) -> Verdict:
    found = after_end(rules, spent, counts, ending)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("ending", "cause", "paid"),
    [
        (CRASH, Cause.EXIT_CODE, Spent(failures=1)),
        (Ending(EndKind.SIGNAL, code=9), Cause.SIGNAL, Spent(failures=1)),
        (Ending(EndKind.OUT_OF_MEMORY), Cause.OUT_OF_MEMORY, Spent(failures=1)),
        (Ending(EndKind.TIMED_OUT), Cause.RAN_TOO_LONG, Spent(failures=1)),
        (Ending(EndKind.NOT_STARTED), Cause.NOT_BUILT, Spent(failures=1)),
        (Ending(EndKind.NO_ROOM), Cause.NO_ROOM, Spent(failures=1)),
        (Ending(EndKind.NO_ROOM, elsewhere=True), Cause.NO_ROOM, Spent()),
        (LOST, Cause.WORKER_LOST, Spent(losses=1)),
        (replace(LOST, started=False), Cause.LOST_BEFORE_START, Spent()),
        (Ending(EndKind.STOPPED, stop=StopCause.PREEMPTED), Cause.PREEMPTED, Spent(losses=1)),
        (Ending(EndKind.SIGNAL, code=15, stop=StopCause.PREEMPTED), Cause.PREEMPTED, Spent(losses=1)),
        (Ending(EndKind.STOPPED, started=False, stop=StopCause.PREEMPTED), Cause.PREEMPTED, Spent()),
        (Ending(EndKind.STOPPED), Cause.WORKER_LOST, Spent(losses=1)),
    ],
)
def test_each_kind_of_end_is_paid_from_its_budget(ending: Ending, cause: Cause, paid: Spent):
    found = verdict(Rules(Budget(failures=1, losses=1)), Spent(), TaskCounts(running=1), ending)
    assert (found.cause, found.paid, found.task) == (cause, paid, TaskState.PENDING)
    assert cause_of(ending) is cause


def test_who_ends_well_although_preempted_has_ended_well():
    found = verdict(Rules(Budget()), Spent(), TaskCounts(running=1), replace(WELL, stop=StopCause.PREEMPTED))
    assert (found.task, found.job) == (TaskState.SUCCEEDED, JobState.SUCCEEDED)


@pytest.mark.parametrize("stop", [StopCause.GANG, StopCause.CANCELLED, StopCause.JOB_OVER])
def test_the_end_of_an_attempt_whose_task_moved_on_changes_nothing(stop: StopCause):
    assert after_end(Rules(Budget()), Spent(), TaskCounts(pending=2), replace(CRASH, stop=stop)) is None


@pytest.mark.parametrize(
    ("stop", "cause"),
    [
        (StopCause.NONE, Cause.DONE),
        (StopCause.PREEMPTED, Cause.DONE),
        (StopCause.GANG, Cause.GANG_RESTART),
        (StopCause.CANCELLED, Cause.CANCELLED),
        (StopCause.JOB_OVER, Cause.JOB_OVER),
    ],
)
def test_an_attempt_that_was_told_to_stop_says_for_what(stop: StopCause, cause: Cause):
    assert cause_of(replace(WELL, stop=stop)) is cause


def test_the_two_budgets_are_spent_separately():
    rules, counts = Rules(Budget(failures=1, losses=1)), TaskCounts(running=1)
    assert verdict(rules, Spent(failures=1), counts, LOST).task is TaskState.PENDING
    assert verdict(rules, Spent(losses=1), counts, CRASH).task is TaskState.PENDING
    assert verdict(rules, Spent(failures=1), counts, CRASH).task is TaskState.FAILED
    assert verdict(rules, Spent(losses=1), counts, LOST).task is TaskState.FAILED


def test_a_loss_before_the_start_is_free_however_often():
    broke = Spent(failures=10**6, losses=10**6)
    found = verdict(Rules(Budget()), broke, TaskCounts(running=1), replace(LOST, started=False))
    assert found.task is TaskState.PENDING


def test_a_job_bears_as_many_failed_tasks_as_it_allows():
    rules = Rules(Budget(), max_failed_tasks=1)
    first = verdict(rules, Spent(), TaskCounts(running=3), CRASH)
    assert (first.rest, first.job) == (Rest.STAY, JobState.RUNNING)
    second = verdict(rules, Spent(), TaskCounts(running=2, failed=1), CRASH)
    assert (second.rest, second.job) == (Rest.CANCEL, JobState.FAILED)


def test_a_job_of_which_no_task_ended_well_has_failed_whatever_it_allows():
    rules = Rules(Budget(), max_failed_tasks=5)
    assert verdict(rules, Spent(), TaskCounts(running=1, failed=1), CRASH).job is JobState.FAILED


def test_a_gang_is_tried_again_whole_and_pays_once():
    rules, counts = Rules(Budget(failures=1), gang=True), TaskCounts(running=4)
    first = verdict(rules, Spent(), counts, CRASH)
    assert (first.task, first.rest, first.paid) == (TaskState.PENDING, Rest.AGAIN, Spent(failures=1))
    # The others crash because the first did, after they were told to stop.
    assert after_end(rules, Spent(failures=1), counts, replace(CRASH, stop=StopCause.GANG)) is None
    second = verdict(rules, Spent(failures=1), counts, CRASH)
    assert (second.task, second.rest, second.job) == (TaskState.FAILED, Rest.CANCEL, JobState.FAILED)


def test_a_gang_that_lost_a_worker_is_tried_again_whole():
    found = verdict(Rules(Budget(), gang=True), Spent(), TaskCounts(running=4), LOST)
    assert (found.rest, found.paid, found.job) == (Rest.AGAIN, Spent(losses=1), JobState.PENDING)


def test_a_gang_is_not_tried_again_without_the_member_that_ended_well():
    found = verdict(Rules(Budget(failures=9), gang=True), Spent(), TaskCounts(running=3, succeeded=1), LOST)
    assert (found.cause, found.rest, found.job) == (Cause.GANG_BROKEN, Rest.CANCEL, JobState.FAILED)


def test_a_task_that_waited_too_long_fails_its_job():
    found = after_wait(Rules(Budget(), max_failed_tasks=9), TaskCounts(pending=2, running=1))
    assert (found.task, found.cause) == (TaskState.FAILED, Cause.WAITED_TOO_LONG)
    assert (found.rest, found.job) == (Rest.CANCEL, JobState.FAILED)


ENDINGS = st.builds(
    Ending,
    st.sampled_from(EndKind),
    st.sampled_from([0, 1]),
    st.booleans(),
    st.sampled_from([StopCause.NONE, StopCause.PREEMPTED]),
)


class Job:
    """A job as the applier of verdicts would keep it."""

    def __init__(self, rules: Rules, tasks: int) -> None:
        self.rules = rules
        self.tasks = [TaskState.PENDING] * tasks
        self.spent = [Spent() for _ in range(tasks)]
        self.state = JobState.PENDING

    @property
    def counts(self) -> TaskCounts:
        found = Counter(self.tasks)
        return TaskCounts(*(found[state] for state in TaskState))

    def start(self, index: int) -> None:
        gang = range(len(self.tasks)) if self.rules.gang else [index]
        for each in gang:
            self._move(each, TaskState.RUNNING)
        self._enter(job_state(self.rules, self.counts))

    def apply(self, index: int, found: Verdict) -> None:
        before = self.spent[index]
        self.spent[index] = Spent(before.failures + found.paid.failures, before.losses + found.paid.losses)
        self._move(index, found.task)
        for other, state in enumerate(self.tasks):
            if other != index and not state.ended and found.rest is not Rest.STAY:
                self._move(other, TaskState.PENDING if found.rest is Rest.AGAIN else TaskState.CANCELLED)
        self._enter(found.job)

    def paid(self, index: int) -> Spent:
        mine = self.spent if self.rules.gang else [self.spent[index]]
        return Spent(sum(each.failures for each in mine), sum(each.losses for each in mine))

    def _move(self, index: int, state: TaskState) -> None:
        if self.tasks[index] is not state:
            TASK.check(f"task {index}", self.tasks[index], state)
            self.tasks[index] = state

    def _enter(self, state: JobState) -> None:
        if self.state is not state:
            JOB.check("job", self.state, state)
            self.state = state


@LAW
@given(
    st.builds(
        Rules, st.builds(Budget, st.integers(0, 2), st.integers(0, 2)), st.booleans(), st.integers(0, 2)
    ),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 3), ENDINGS), max_size=20),
)
def test_every_story_follows_the_tables_and_no_budget_is_overdrawn(
    rules: Rules, tasks: int, story: list[tuple[int, Ending]]
):
    job = Job(rules, tasks)
    for number, ending in story:
        index = number % tasks
        if job.state.ended or job.tasks[index].ended:
            continue
        if job.tasks[index] is TaskState.PENDING:
            job.start(index)
        found = after_end(rules, job.paid(index), job.counts, ending)
        assert found is not None
        job.apply(index, found)
        if found.task is TaskState.PENDING:
            assert job.paid(index).failures <= rules.budget.failures, "tried again beyond its budget"
            assert job.paid(index).losses <= rules.budget.losses, "tried again beyond its budget"
        if rules.gang and not job.state.ended:
            waits = [state for state in job.tasks if state is TaskState.PENDING]
            assert len(waits) in (0, tasks), "a part of a gang waits to start"
        assert job.state is job_state(rules, job.counts), "the verdict's job is not the one its tasks make"
        assert job.state.ended == all(state.ended for state in job.tasks), "a job and its tasks end together"
