"""The one place where jobs, tasks and attempts move. Each move is checked by its table and noted in the journal."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from msgspec.structs import replace

from neorion.iris.controllers.context import ControllerContext
from neorion.iris.decide.lifecycle import (
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
from neorion.iris.model import (
    ATTEMPT,
    JOB,
    TASK,
    AttemptId,
    AttemptState,
    ExitKind,
    JobId,
    JobState,
    StopCause,
    TaskReason,
    TaskState,
    WorkerId,
)
from neorion.iris.model.record import Attempt, Job, Outcome, Task
from neorion.iris.model.spec import JobSpec
from neorion.keel.base import Instant

_ENDS = {
    ExitKind.LOST: AttemptState.LOST,
    ExitKind.STOPPED: AttemptState.STOPPED,
}
# Ends that only what has begun can have.
_STARTED_KINDS = frozenset({ExitKind.EXIT, ExitKind.SIGNAL, ExitKind.OUT_OF_MEMORY, ExitKind.TIMED_OUT})

# How a worker's reports move an attempt: forward.
_FORWARD = {
    AttemptState.ASSIGNED: (AttemptState.BUILDING, AttemptState.RUNNING),
    AttemptState.BUILDING: (AttemptState.RUNNING,),
}


@dataclass(slots=True)
class PendingNotifications:
    """What those outside have to hear: attempts to start and to stop, attempts and jobs that are over, workers given up."""

    starts: list[Attempt] = field(default_factory=list[Attempt])
    stops: list[Attempt] = field(default_factory=list[Attempt])
    over: list[Attempt] = field(default_factory=list[Attempt])
    ended: list[JobId] = field(default_factory=list[JobId])
    lost: list[WorkerId] = field(default_factory=list[WorkerId])


class LifecycleManager:
    """Moves records from state to state as the rules of `decide.lifecycle` say.

    What moved is collected until `take` is called. Whoever carries that outside waits for the journal first.
    """

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._cluster = context.cluster
        self._moves = PendingNotifications()
        self.moved = asyncio.Event()

    def take(self) -> PendingNotifications:
        """What moved since the last time."""
        moves, self._moves = self._moves, PendingNotifications()
        self.moved.clear()
        return moves

    def begin(self, job: JobId, index: int, worker: WorkerId, ports: tuple[int, ...], meet: str) -> None:
        """A place was found for a task."""
        now = self._context.clock.now()
        task = self._cluster.tasks[job][index]
        attempt = Attempt(
            id=self._context.ids.new(AttemptId),
            job=job,
            index=index,
            number=task.tries + 1,
            worker=worker,
            assigned=now,
            ports=ports,
            gpus=self._free_gpus(worker, self._cluster.jobs[job].spec.resources.gpus),
            meet=meet,
            secret=self._context.ids.secret(),
        )
        self._move_task(task, TaskState.RUNNING, attempt=attempt.id, tries=attempt.number)
        self._cluster.put_attempt(attempt)
        self._settle(job)
        self._moves.starts.append(attempt)
        self.moved.set()

    def _free_gpus(self, worker: WorkerId, count: int) -> tuple[int, ...]:
        """Tasks that share a worker do not share its GPUs; who is stopping still holds its own."""
        if not count:
            return ()
        placed = self._cluster.attempts_on_worker[worker]
        held = {gpu for attempt in placed for gpu in self._cluster.attempts[attempt].gpus}
        free = (gpu for gpu in range(self._cluster.workers[worker].total.gpus) if gpu not in held)
        return tuple(islice(free, count))

    def update_attempt(self, attempt: Attempt, state: AttemptState) -> None:
        """The worker builds it, or runs it."""
        if state not in _FORWARD.get(attempt.state, ()):
            # It is being stopped, or the report is older than one that overtook it.
            return
        now = self._context.clock.now()
        self._cluster.put_attempt(replace(attempt, state=state, started=attempt.started or now))
        if state is AttemptState.RUNNING:
            self._count_start(attempt, now)

    def stop(self, attempt: Attempt, why: StopCause) -> None:
        """Its worker is told to end it; until that is done it holds its place."""
        if attempt.state is AttemptState.STOPPING:
            self._cluster.put_attempt(replace(attempt, doom=why))
            return
        ATTEMPT.check(attempt.id, attempt.state, AttemptState.STOPPING)
        stopping = replace(attempt, state=AttemptState.STOPPING, doom=why)
        self._cluster.put_attempt(stopping)
        self._moves.stops.append(stopping)
        self.moved.set()

    def end(self, attempt: Attempt, kind: ExitKind, ending: Outcome) -> None:
        """An attempt is over. If it is the one that counts, its task and its job move on."""
        well = kind is ExitKind.EXIT and ending.code == 0
        state = AttemptState.SUCCEEDED if well else _ENDS.get(kind, AttemptState.FAILED)
        elsewhere = kind is ExitKind.NO_ROOM and self._cluster.avoid_worker(attempt.job, attempt.worker)
        begun = attempt.state is not AttemptState.ASSIGNED
        end = AttemptEnd(kind, ending.code, begun, attempt.doom, elsewhere)
        ATTEMPT.check(attempt.id, attempt.state, state)
        told, now, started = replace(ending, cause=cause_of(end)), self._context.clock.now(), attempt.started
        if kind in _STARTED_KINDS and attempt.state in _FORWARD:
            # Over before its worker had told that it began: that was a moment ago.
            started = started or now
            self._count_start(attempt, now)
        self._cluster.put_attempt(
            replace(attempt, state=state, started=started, ended=now, ending=told, secret="")
        )
        self._context.metrics.ended("succeeded" if well else kind.value)
        self._moves.over.append(attempt)
        self.moved.set()
        # Whatever it submitted ends with it: if it is tried again, it submits the same again.
        for child in list(self._cluster.child_jobs.get(attempt.id, ())):
            self.cancel(child, TaskReason.JOB_OVER)
        # Its place is free now, and that may be what others wait for.
        self._context.wake()
        task = self._cluster.tasks[attempt.job][attempt.index]
        if task.attempt != attempt.id or task.state is not TaskState.RUNNING:
            return
        spec = self._cluster.jobs[attempt.job].spec
        verdict = on_attempt_end(_rules(spec), self._spent(spec, task), self._counts(task.job), end)
        if verdict is not None:
            self._carry_out(verdict, task, replace(ending, cause=verdict.cause))

    def _count_start(self, attempt: Attempt, now: Instant) -> None:
        waited = now.since(self._cluster.jobs[attempt.job].submitted).seconds
        self._context.metrics.started(max(0.0, waited) if attempt.number == 1 else None)

    def lose(self, worker: WorkerId, why: str) -> None:
        """Everything on a worker that has certainly ended its tasks."""
        for view in list(self._cluster.attempts_on_worker[worker].values()):
            self.end(self._cluster.attempts[view.attempt], ExitKind.LOST, Outcome(message=why))
        self._moves.lost.append(worker)
        self.moved.set()

    def cancel(self, job: JobId, cause: TaskReason) -> list[JobId]:
        """A job and everything submitted from within it. Returns those that had not ended."""
        family = [job]
        for here in family:
            family += self._cluster.children.get(here, {})
        found = [here for here in family if not self._cluster.jobs[here].state.ended]
        # Children first, so that each ends for the cause given here and not because its parent ended.
        for here in reversed(found):
            self._stop_siblings(here, TaskState.CANCELLED, StopCause.CANCELLED, Outcome(cause=cause))
            self._settle(here)
        return found

    def expire_task(self, task: Task) -> None:
        """The task waited longer than it may."""
        rules = _rules(self._cluster.jobs[task.job].spec)
        verdict = on_wait_timeout(rules, self._counts(task.job))
        self._carry_out(verdict, task, Outcome(cause=verdict.cause))

    def _carry_out(self, verdict: TaskTransition, task: Task, ending: Outcome) -> None:
        self._move_task(
            task,
            verdict.task,
            failures=task.failures + verdict.paid.failures,
            losses=task.losses + verdict.paid.losses,
            ending=ending,
        )
        match verdict.rest:
            case SiblingAction.AGAIN:
                self._stop_siblings(
                    task.job, TaskState.PENDING, StopCause.GANG, Outcome(cause=TaskReason.GANG_RESTART)
                )
            case SiblingAction.CANCEL:
                self._stop_siblings(
                    task.job, TaskState.CANCELLED, StopCause.JOB_OVER, Outcome(cause=TaskReason.JOB_OVER)
                )
            case SiblingAction.STAY:
                pass
        self._settle(task.job, verdict.job)

    def _stop_siblings(self, job: JobId, state: TaskState, why: StopCause, ending: Outcome) -> None:
        for task in list(self._cluster.live_tasks(job)):
            attempt = self._cluster.attempts.get(task.attempt)
            if attempt is not None:
                self.stop(attempt, why)
            if task.state is not state:
                self._move_task(task, state, ending=ending)

    def _move_task(self, task: Task, state: TaskState, **changes: object) -> None:
        TASK.check(f"{task.job}/{task.index}", task.state, state)
        self._cluster.put_task(replace(task, state=state, since=self._context.clock.now(), **changes))

    def _settle(self, job_id: JobId, state: JobState | None = None) -> None:
        """The job's state as it follows from its tasks, or as a verdict says."""
        job = self._cluster.jobs[job_id]
        state = state or job_state(_rules(job.spec), self._counts(job_id))
        if state is job.state or job.state.ended:
            return
        JOB.check(job.id, job.state, state)
        now = self._context.clock.now()
        if not state.ended:
            self._cluster.put_job(replace(job, state=state))
            return
        self._cluster.put_job(replace(job, state=state, ended=now, ending=self._job_ending(job)))
        self._moves.ended.append(job_id)
        self.moved.set()
        # Whatever was kept for it, or was to be bought for it, is not needed any more.
        self._context.wake()
        for child in self._cluster.children.get(job_id, {}):
            self.cancel(child, TaskReason.JOB_OVER)

    def _job_ending(self, job: Job) -> Outcome:
        """That of the first task that failed; for people, without the value."""
        tasks = self._cluster.tasks[job.id]
        worst = next((task for task in tasks if task.state is TaskState.FAILED), None)
        worst = worst or next((task for task in tasks if task.state is TaskState.CANCELLED), None)
        return replace(worst.ending, result="", result_bytes=0) if worst else Outcome()

    def _counts(self, job: JobId) -> TaskCounts:
        counts = self._cluster.counts[job]
        return TaskCounts(**{state.value: count for state, count in counts.items()})

    def _spent(self, spec: JobSpec, task: Task) -> RetriesUsed:
        """A gang pays as one."""
        tasks: Iterable[Task] = self._cluster.tasks[task.job] if spec.placement.gang else (task,)
        tasks = list(tasks)
        return RetriesUsed(sum(one.failures for one in tasks), sum(one.losses for one in tasks))


def _rules(spec: JobSpec) -> RetryPolicy:
    return RetryPolicy(spec.budget, bool(spec.placement.gang), spec.max_failed_tasks)
