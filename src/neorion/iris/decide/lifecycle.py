"""Transitions after the end of an attempt: of its task, of the other tasks of the job, and of the job.

A task has two retry budgets: for its own failures, and for lost workers and preemptions. An attempt that was
lost before it started is free. A gang shares its budgets: only the first attempt that ends badly is counted.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from neorion.iris.model import ExitKind, JobState, RetryBudget, StopCause, TaskReason, TaskState


class SiblingAction(StrEnum):
    """Action for the other tasks of the job that have not ended.

    AGAIN: they become pending (GANG_RESTART), and their attempts are stopped with cause GANG, whatever the earlier
    cause was. CANCEL: they are cancelled (JOB_OVER), and their attempts are stopped with cause JOB_OVER.
    """

    STAY = "stay"
    AGAIN = "again"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """End of an attempt. `started` is true if its worker had begun to build or run it.

    `elsewhere` is true if some worker has not yet refused this job for lack of disk space.
    """

    kind: ExitKind
    code: int = 0
    started: bool = True
    stop: StopCause = StopCause.NONE
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The part of a job's spec that decides about retries."""

    budget: RetryBudget
    gang: bool = False
    max_failed_tasks: int = 0


@dataclass(frozen=True, slots=True)
class RetriesUsed:
    """Retries used so far, by a task or by all tasks of a gang together."""

    failures: int = 0
    losses: int = 0


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Number of tasks of a job in each state."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0


@dataclass(frozen=True, slots=True)
class TaskTransition:
    """New state of the task (PENDING: a retry) and of its job. `paid` are the retries used, `rest` is for its siblings."""

    task: TaskState
    cause: TaskReason
    paid: RetriesUsed
    rest: SiblingAction
    job: JobState


_FAILURE, _LOSS, _FREE = RetriesUsed(failures=1), RetriesUsed(losses=1), RetriesUsed()

_ENDS = {
    ExitKind.EXIT: (TaskReason.EXIT_CODE, _FAILURE),
    ExitKind.SIGNAL: (TaskReason.SIGNAL, _FAILURE),
    ExitKind.OUT_OF_MEMORY: (TaskReason.OUT_OF_MEMORY, _FAILURE),
    ExitKind.TIMED_OUT: (TaskReason.RAN_TOO_LONG, _FAILURE),
    # Without a stop request, the worker itself stopped it.
    ExitKind.STOPPED: (TaskReason.WORKER_LOST, _LOSS),
    # Counted, because otherwise an environment that cannot be built would be retried forever.
    ExitKind.NOT_STARTED: (TaskReason.NOT_BUILT, _FAILURE),
    ExitKind.LOST: (TaskReason.WORKER_LOST, _LOSS),
    ExitKind.NO_ROOM: (TaskReason.NO_ROOM, _FAILURE),
}

_STOPS = {
    StopCause.GANG: TaskReason.GANG_RESTART,
    StopCause.CANCELLED: TaskReason.CANCELLED,
    StopCause.JOB_OVER: TaskReason.JOB_OVER,
}


def on_attempt_end(
    rules: RetryPolicy, spent: RetriesUsed, counts: TaskCounts, ending: AttemptEnd
) -> TaskTransition | None:
    """Transition after the end of an attempt; None if the task had already moved on when the stop was requested.

    `counts` are those before the end, with the task of this attempt among the running.
    """
    if ending.stop in _STOPS:
        return None
    others = replace(counts, running=counts.running - 1)
    if ending.kind is ExitKind.EXIT and ending.code == 0:
        done = replace(others, succeeded=others.succeeded + 1)
        return TaskTransition(
            TaskState.SUCCEEDED, TaskReason.DONE, _FREE, SiblingAction.STAY, job_state(rules, done)
        )
    cause, paid = _cost_of(ending)
    if _budget_exceeded(rules.budget, spent, paid):
        return _fail(rules, others, cause, paid)
    if not rules.gang:
        again = replace(others, pending=others.pending + 1)
        return TaskTransition(TaskState.PENDING, cause, paid, SiblingAction.STAY, job_state(rules, again))
    if counts.succeeded:
        # A gang starts completely or not at all, and succeeded tasks are not run again.
        return _fail(rules, others, TaskReason.GANG_BROKEN, paid)
    return TaskTransition(TaskState.PENDING, cause, paid, SiblingAction.AGAIN, JobState.PENDING)


def cause_of(ending: AttemptEnd) -> TaskReason:
    """Reason for the end of this attempt, independent of the next step of its task."""
    if ending.stop in _STOPS:
        return _STOPS[ending.stop]
    if ending.kind is ExitKind.EXIT and ending.code == 0:
        return TaskReason.DONE
    return _cost_of(ending)[0]


def on_wait_timeout(rules: RetryPolicy, counts: TaskCounts) -> TaskTransition:
    """Transition after a scheduling timeout: the job cannot get what it needs, and fails."""
    others = replace(counts, pending=counts.pending - 1)
    return replace(
        _fail(rules, others, TaskReason.WAITED_TOO_LONG, _FREE),
        rest=SiblingAction.CANCEL,
        job=JobState.FAILED,
    )


def job_state(rules: RetryPolicy, counts: TaskCounts) -> JobState:
    """State of a job, derived from its tasks."""
    if counts.failed > (0 if rules.gang else rules.max_failed_tasks):
        return JobState.FAILED
    if counts.running:
        return JobState.RUNNING
    if counts.pending:
        return JobState.PENDING
    if counts.cancelled:
        return JobState.CANCELLED
    return JobState.SUCCEEDED if counts.succeeded else JobState.FAILED


def _cost_of(ending: AttemptEnd) -> tuple[TaskReason, RetriesUsed]:
    if ending.kind is ExitKind.LOST and not ending.started:
        return TaskReason.LOST_BEFORE_START, _FREE
    if ending.kind is ExitKind.NO_ROOM and ending.elsewhere:
        return TaskReason.NO_ROOM, _FREE
    if ending.stop is StopCause.PREEMPTED:
        # The preemption is the cause, however the attempt ended after the request.
        return TaskReason.PREEMPTED, _LOSS if ending.started else _FREE
    return _ENDS[ending.kind]


def _budget_exceeded(budget: RetryBudget, spent: RetriesUsed, paid: RetriesUsed) -> bool:
    if paid.failures:
        return spent.failures + paid.failures > budget.failures
    return bool(paid.losses) and spent.losses + paid.losses > budget.losses


def _fail(rules: RetryPolicy, others: TaskCounts, cause: TaskReason, paid: RetriesUsed) -> TaskTransition:
    job = job_state(rules, replace(others, failed=others.failed + 1))
    return TaskTransition(
        TaskState.FAILED,
        cause,
        paid,
        SiblingAction.CANCEL if job is JobState.FAILED else SiblingAction.STAY,
        job,
    )
