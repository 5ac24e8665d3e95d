"""What follows from the end of an attempt: for its task, for the other tasks of its job, and for the job.

A task pays for its own failures and for losing its place from two budgets. An attempt that was lost before it started costs
nothing. A gang pays as one: the first of its attempts to end badly pays, the others are stopped and pay nothing.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from neorion.iris.model import Budget, Cause, EndKind, JobState, StopCause, TaskState


class Rest(StrEnum):
    """What becomes of the other tasks of the job that have not ended.

    AGAIN: they wait again (GANG_RESTART), and their attempts are stopped because of GANG, whatever they were stopped for
    before. CANCEL: they are cancelled (JOB_OVER), and their attempts are stopped because of JOB_OVER.
    """

    STAY = "stay"
    AGAIN = "again"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ended; `started` is whether its worker had begun to build or run it.

    `elsewhere` is whether there is a worker that did not turn this job away for want of room.
    """

    kind: EndKind
    code: int = 0
    started: bool = True
    stop: StopCause = StopCause.NONE
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """What of a job's spec decides about its ends."""

    budget: Budget
    gang: bool = False
    max_failed_tasks: int = 0


@dataclass(frozen=True, slots=True)
class Spent:
    """What was paid so far: by a task, or by all tasks of a gang together."""

    failures: int = 0
    losses: int = 0


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """How many tasks of a job are in which state."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """`task` is where the task goes (PENDING: it is tried again), `paid` what this end costs it, `job` where its job goes."""

    task: TaskState
    cause: Cause
    paid: Spent
    rest: Rest
    job: JobState


_FAILURE, _LOSS, _FREE = Spent(failures=1), Spent(losses=1), Spent()

_ENDS = {
    EndKind.EXIT: (Cause.EXIT_CODE, _FAILURE),
    EndKind.SIGNAL: (Cause.SIGNAL, _FAILURE),
    EndKind.OUT_OF_MEMORY: (Cause.OUT_OF_MEMORY, _FAILURE),
    EndKind.TIMED_OUT: (Cause.RAN_TOO_LONG, _FAILURE),
    # Nobody told it to stop, so its worker gave it up.
    EndKind.STOPPED: (Cause.WORKER_LOST, _LOSS),
    # Paid for, or an environment that cannot be built would be tried for ever.
    EndKind.NOT_STARTED: (Cause.NOT_BUILT, _FAILURE),
    EndKind.LOST: (Cause.WORKER_LOST, _LOSS),
    EndKind.NO_ROOM: (Cause.NO_ROOM, _FAILURE),
}

_STOPS = {
    StopCause.GANG: Cause.GANG_RESTART,
    StopCause.CANCELLED: Cause.CANCELLED,
    StopCause.JOB_OVER: Cause.JOB_OVER,
}


def after_end(rules: Rules, spent: Spent, counts: TaskCounts, ending: Ending) -> Verdict | None:
    """What follows when an attempt ends; None if its task has moved on when the attempt was told to stop.

    `counts` are from before the end, with the task of this attempt among the running.
    """
    if ending.stop in _STOPS:
        return None
    others = replace(counts, running=counts.running - 1)
    if ending.kind is EndKind.EXIT and ending.code == 0:
        done = replace(others, succeeded=others.succeeded + 1)
        return Verdict(TaskState.SUCCEEDED, Cause.DONE, _FREE, Rest.STAY, job_state(rules, done))
    cause, paid = _charge(ending)
    if _beyond(rules.budget, spent, paid):
        return _fail(rules, others, cause, paid)
    if not rules.gang:
        again = replace(others, pending=others.pending + 1)
        return Verdict(TaskState.PENDING, cause, paid, Rest.STAY, job_state(rules, again))
    if counts.succeeded:
        # A gang starts whole or not at all, and what ended well is not run again.
        return _fail(rules, others, Cause.GANG_BROKEN, paid)
    return Verdict(TaskState.PENDING, cause, paid, Rest.AGAIN, JobState.PENDING)


def cause_of(ending: Ending) -> Cause:
    """Why this attempt ended, whatever its task does next."""
    if ending.stop in _STOPS:
        return _STOPS[ending.stop]
    if ending.kind is EndKind.EXIT and ending.code == 0:
        return Cause.DONE
    return _charge(ending)[0]


def after_wait(rules: Rules, counts: TaskCounts) -> Verdict:
    """What follows when a task has waited longer than it may: the job does not get what it needs, and fails."""
    others = replace(counts, pending=counts.pending - 1)
    return replace(_fail(rules, others, Cause.WAITED_TOO_LONG, _FREE), rest=Rest.CANCEL, job=JobState.FAILED)


def job_state(rules: Rules, counts: TaskCounts) -> JobState:
    """A job's state follows from its tasks."""
    if counts.failed > (0 if rules.gang else rules.max_failed_tasks):
        return JobState.FAILED
    if counts.running:
        return JobState.RUNNING
    if counts.pending:
        return JobState.PENDING
    if counts.cancelled:
        return JobState.CANCELLED
    return JobState.SUCCEEDED if counts.succeeded else JobState.FAILED


def _charge(ending: Ending) -> tuple[Cause, Spent]:
    if ending.kind is EndKind.LOST and not ending.started:
        return Cause.LOST_BEFORE_START, _FREE
    if ending.kind is EndKind.NO_ROOM and ending.elsewhere:
        return Cause.NO_ROOM, _FREE
    if ending.stop is StopCause.PREEMPTED:
        # However it ended after it was told to, it ended because it was told to.
        return Cause.PREEMPTED, _LOSS if ending.started else _FREE
    return _ENDS[ending.kind]


def _beyond(budget: Budget, spent: Spent, paid: Spent) -> bool:
    if paid.failures:
        return spent.failures + paid.failures > budget.failures
    return bool(paid.losses) and spent.losses + paid.losses > budget.losses


def _fail(rules: Rules, others: TaskCounts, cause: Cause, paid: Spent) -> Verdict:
    job = job_state(rules, replace(others, failed=others.failed + 1))
    return Verdict(TaskState.FAILED, cause, paid, Rest.CANCEL if job is JobState.FAILED else Rest.STAY, job)
