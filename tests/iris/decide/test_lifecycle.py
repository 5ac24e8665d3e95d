"""What an end costs, and what follows from it."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neorion.iris.decide import (
    AttemptEnd,
    RetriesUsed,
    RetryPolicy,
    SiblingAction,
    TaskCounts,
    TaskTransition,
    cause_of,
    job_state,
    on_attempt_end,
    on_wait_timeout,
)
from neorion.iris.model import JOB, TASK, ExitKind, JobState, RetryBudget, StopCause, TaskReason, TaskState

LAW = settings(deadline=None)
WELL = AttemptEnd(ExitKind.EXIT)
CRASH = AttemptEnd(ExitKind.EXIT, code=1)
LOST = AttemptEnd(ExitKind.LOST)


def verdict(rules: RetryPolicy, spent: RetriesUsed, counts: TaskCounts, ending: AttemptEnd) -> TaskTransition:
    found = on_attempt_end(rules, spent, counts, ending)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("ending", "cause", "paid"),
    [
        (CRASH, TaskReason.EXIT_CODE, RetriesUsed(failures=1)),
        (AttemptEnd(ExitKind.SIGNAL, code=9), TaskReason.SIGNAL, RetriesUsed(failures=1)),
        (AttemptEnd(ExitKind.OUT_OF_MEMORY), TaskReason.OUT_OF_MEMORY, RetriesUsed(failures=1)),
        (AttemptEnd(ExitKind.TIMED_OUT), TaskReason.RAN_TOO_LONG, RetriesUsed(failures=1)),
        (AttemptEnd(ExitKind.NOT_STARTED), TaskReason.NOT_BUILT, RetriesUsed(failures=1)),
        (AttemptEnd(ExitKind.NO_ROOM), TaskReason.NO_ROOM, RetriesUsed(failures=1)),
        (AttemptEnd(ExitKind.NO_ROOM, elsewhere=True), TaskReason.NO_ROOM, RetriesUsed()),
        (LOST, TaskReason.WORKER_LOST, RetriesUsed(losses=1)),
        (replace(LOST, started=False), TaskReason.LOST_BEFORE_START, RetriesUsed()),
        (AttemptEnd(ExitKind.STOPPED, stop=StopCause.PREEMPTED), TaskReason.PREEMPTED, RetriesUsed(losses=1)),
        (
            AttemptEnd(ExitKind.SIGNAL, code=15, stop=StopCause.PREEMPTED),
            TaskReason.PREEMPTED,
            RetriesUsed(losses=1),
        ),
        (
            AttemptEnd(ExitKind.STOPPED, started=False, stop=StopCause.PREEMPTED),
            TaskReason.PREEMPTED,
            RetriesUsed(),
        ),
        (AttemptEnd(ExitKind.STOPPED), TaskReason.WORKER_LOST, RetriesUsed(losses=1)),
    ],
)
def test_each_kind_of_end_is_paid_from_its_budget(ending: AttemptEnd, cause: TaskReason, paid: RetriesUsed):
    found = verdict(
        RetryPolicy(RetryBudget(failures=1, losses=1)), RetriesUsed(), TaskCounts(running=1), ending
    )
    assert (found.cause, found.paid, found.task) == (cause, paid, TaskState.PENDING)
    assert cause_of(ending) is cause


def test_who_ends_well_although_preempted_has_ended_well():
    found = verdict(
        RetryPolicy(RetryBudget()),
        RetriesUsed(),
        TaskCounts(running=1),
        replace(WELL, stop=StopCause.PREEMPTED),
    )
    assert (found.task, found.job) == (TaskState.SUCCEEDED, JobState.SUCCEEDED)


@pytest.mark.parametrize("stop", [StopCause.GANG, StopCause.CANCELLED, StopCause.JOB_OVER])
def test_the_end_of_an_attempt_whose_task_moved_on_changes_nothing(stop: StopCause):
    assert (
        on_attempt_end(
            RetryPolicy(RetryBudget()), RetriesUsed(), TaskCounts(pending=2), replace(CRASH, stop=stop)
        )
        is None
    )


@pytest.mark.parametrize(
    ("stop", "cause"),
    [
        (StopCause.NONE, TaskReason.DONE),
        (StopCause.PREEMPTED, TaskReason.DONE),
        (StopCause.GANG, TaskReason.GANG_RESTART),
        (StopCause.CANCELLED, TaskReason.CANCELLED),
        (StopCause.JOB_OVER, TaskReason.JOB_OVER),
    ],
)
def test_an_attempt_that_was_told_to_stop_says_for_what(stop: StopCause, cause: TaskReason):
    assert cause_of(replace(WELL, stop=stop)) is cause


def test_the_two_budgets_are_spent_separately():
    rules, counts = RetryPolicy(RetryBudget(failures=1, losses=1)), TaskCounts(running=1)
    assert verdict(rules, RetriesUsed(failures=1), counts, LOST).task is TaskState.PENDING
    assert verdict(rules, RetriesUsed(losses=1), counts, CRASH).task is TaskState.PENDING
    assert verdict(rules, RetriesUsed(failures=1), counts, CRASH).task is TaskState.FAILED
    assert verdict(rules, RetriesUsed(losses=1), counts, LOST).task is TaskState.FAILED


def test_a_loss_before_the_start_is_free_however_often():
    broke = RetriesUsed(failures=10**6, losses=10**6)
    found = verdict(RetryPolicy(RetryBudget()), broke, TaskCounts(running=1), replace(LOST, started=False))
    assert found.task is TaskState.PENDING


def test_a_job_bears_as_many_failed_tasks_as_it_allows():
    rules = RetryPolicy(RetryBudget(), max_failed_tasks=1)
    first = verdict(rules, RetriesUsed(), TaskCounts(running=3), CRASH)
    assert (first.rest, first.job) == (SiblingAction.STAY, JobState.RUNNING)
    second = verdict(rules, RetriesUsed(), TaskCounts(running=2, failed=1), CRASH)
    assert (second.rest, second.job) == (SiblingAction.CANCEL, JobState.FAILED)


def test_a_job_of_which_no_task_ended_well_has_failed_whatever_it_allows():
    rules = RetryPolicy(RetryBudget(), max_failed_tasks=5)
    assert verdict(rules, RetriesUsed(), TaskCounts(running=1, failed=1), CRASH).job is JobState.FAILED


def test_a_gang_is_tried_again_whole_and_pays_once():
    rules, counts = RetryPolicy(RetryBudget(failures=1), gang=True), TaskCounts(running=4)
    first = verdict(rules, RetriesUsed(), counts, CRASH)
    assert (first.task, first.rest, first.paid) == (
        TaskState.PENDING,
        SiblingAction.AGAIN,
        RetriesUsed(failures=1),
    )
    # The others crash because the first did, after they were told to stop.
    assert on_attempt_end(rules, RetriesUsed(failures=1), counts, replace(CRASH, stop=StopCause.GANG)) is None
    second = verdict(rules, RetriesUsed(failures=1), counts, CRASH)
    assert (second.task, second.rest, second.job) == (TaskState.FAILED, SiblingAction.CANCEL, JobState.FAILED)


def test_a_gang_that_lost_a_worker_is_tried_again_whole():
    found = verdict(RetryPolicy(RetryBudget(), gang=True), RetriesUsed(), TaskCounts(running=4), LOST)
    assert (found.rest, found.paid, found.job) == (
        SiblingAction.AGAIN,
        RetriesUsed(losses=1),
        JobState.PENDING,
    )


def test_a_gang_is_not_tried_again_without_the_member_that_ended_well():
    found = verdict(
        RetryPolicy(RetryBudget(failures=9), gang=True),
        RetriesUsed(),
        TaskCounts(running=3, succeeded=1),
        LOST,
    )
    assert (found.cause, found.rest, found.job) == (
        TaskReason.GANG_BROKEN,
        SiblingAction.CANCEL,
        JobState.FAILED,
    )


def test_a_task_that_waited_too_long_fails_its_job():
    found = on_wait_timeout(RetryPolicy(RetryBudget(), max_failed_tasks=9), TaskCounts(pending=2, running=1))
    assert (found.task, found.cause) == (TaskState.FAILED, TaskReason.WAITED_TOO_LONG)
    assert (found.rest, found.job) == (SiblingAction.CANCEL, JobState.FAILED)


ENDINGS = st.builds(
    AttemptEnd,
    st.sampled_from(ExitKind),
    st.sampled_from([0, 1]),
    st.booleans(),
    st.sampled_from([StopCause.NONE, StopCause.PREEMPTED]),
)


class Job:
    """A job as the applier of verdicts would keep it."""

    def __init__(self, rules: RetryPolicy, tasks: int) -> None:
        self.rules = rules
        self.tasks = [TaskState.PENDING] * tasks
        self.spent = [RetriesUsed() for _ in range(tasks)]
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

    def apply(self, index: int, found: TaskTransition) -> None:
        before = self.spent[index]
        self.spent[index] = RetriesUsed(
            before.failures + found.paid.failures, before.losses + found.paid.losses
        )
        self._move(index, found.task)
        for other, state in enumerate(self.tasks):
            if other != index and not state.ended and found.rest is not SiblingAction.STAY:
                self._move(
                    other, TaskState.PENDING if found.rest is SiblingAction.AGAIN else TaskState.CANCELLED
                )
        self._enter(found.job)

    def paid(self, index: int) -> RetriesUsed:
        mine = self.spent if self.rules.gang else [self.spent[index]]
        return RetriesUsed(sum(each.failures for each in mine), sum(each.losses for each in mine))

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
        RetryPolicy,
        st.builds(RetryBudget, st.integers(0, 2), st.integers(0, 2)),
        st.booleans(),
        st.integers(0, 2),
    ),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 3), ENDINGS), max_size=20),
)
def test_every_story_follows_the_tables_and_no_budget_is_overdrawn(
    rules: RetryPolicy, tasks: int, story: list[tuple[int, AttemptEnd]]
):
    job = Job(rules, tasks)
    for number, ending in story:
        index = number % tasks
        if job.state.ended or job.tasks[index].ended:
            continue
        if job.tasks[index] is TaskState.PENDING:
            job.start(index)
        found = on_attempt_end(rules, job.paid(index), job.counts, ending)
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
