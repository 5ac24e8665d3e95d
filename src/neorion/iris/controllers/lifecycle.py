"""Lifecycle of jobs, tasks and attempts. Each transition is checked by its table and written to the journal."""

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
# Exit kinds that imply that the task had started.
_STARTED_KINDS = frozenset({ExitKind.EXIT, ExitKind.SIGNAL, ExitKind.OUT_OF_MEMORY, ExitKind.TIMED_OUT})

# Transitions by a worker's reports, which only go forward.
_FORWARD = {
    AttemptState.ASSIGNED: (AttemptState.BUILDING, AttemptState.RUNNING),
    AttemptState.BUILDING: (AttemptState.RUNNING,),
}


@dataclass(slots=True)
class PendingNotifications:
    """Transitions to publish: attempts to start and to stop, ended attempts and jobs, and lost workers."""

    starts: list[Attempt] = field(default_factory=list[Attempt])
    stops: list[Attempt] = field(default_factory=list[Attempt])
    over: list[Attempt] = field(default_factory=list[Attempt])
    ended: list[JobId] = field(default_factory=list[JobId])
    lost: list[WorkerId] = field(default_factory=list[WorkerId])


class LifecycleManager:
    """Applier of transitions by the rules of `decide.lifecycle`.

    Transitions are collected until `take` is called. The caller publishes them after the journal is durable.
    """

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._cluster = context.cluster
        self._moves = PendingNotifications()
        self.moved = asyncio.Event()

    def take(self) -> PendingNotifications:
        """Returns the transitions since the last call."""
        moves, self._moves = self._moves, PendingNotifications()
        self.moved.clear()
        return moves

    def begin(
        self, job: JobId, index: int, worker: WorkerId, ports: tuple[int, ...], rendezvous: str
    ) -> None:
        """Starts an attempt of a task on a worker."""
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
            rendezvous=rendezvous,
            secret=self._context.ids.secret(),
        )
        self._move_task(task, TaskState.RUNNING, attempt=attempt.id, tries=attempt.number)
        self._cluster.put_attempt(attempt)
        self._update_job(job)
        self._moves.starts.append(attempt)
        self.moved.set()

    def _free_gpus(self, worker: WorkerId, count: int) -> tuple[int, ...]:
        """GPUs for a new attempt. Attempts on one worker never share GPUs; a stopping attempt still owns its own."""
        if not count:
            return ()
        placed = self._cluster.attempts_on_worker[worker]
        in_use = {gpu for attempt in placed for gpu in self._cluster.attempts[attempt].gpus}
        free = (gpu for gpu in range(self._cluster.workers[worker].total.gpus) if gpu not in in_use)
        return tuple(islice(free, count))

    def update_attempt(self, attempt: Attempt, state: AttemptState) -> None:
        """Applies the state that the worker reports: building or running."""
        if state not in _FORWARD.get(attempt.state, ()):
            # The attempt is being stopped, or a newer report has arrived first.
            return
        now = self._context.clock.now()
        self._cluster.put_attempt(replace(attempt, state=state, started=attempt.started or now))
        if state is AttemptState.RUNNING:
            self._count_start(attempt, now)

    def stop(self, attempt: Attempt, why: StopCause) -> None:
        """Requests the stop of an attempt. It occupies its worker until it has ended."""
        if attempt.state is AttemptState.STOPPING:
            self._cluster.put_attempt(replace(attempt, stop_cause=why))
            return
        ATTEMPT.check(attempt.id, attempt.state, AttemptState.STOPPING)
        stopping = replace(attempt, state=AttemptState.STOPPING, stop_cause=why)
        self._cluster.put_attempt(stopping)
        self._moves.stops.append(stopping)
        self.moved.set()

    def end(self, attempt: Attempt, kind: ExitKind, ending: Outcome) -> None:
        """Ends an attempt. If it is the current attempt of its task, the task and the job change too."""
        well = kind is ExitKind.EXIT and ending.code == 0
        state = AttemptState.SUCCEEDED if well else _ENDS.get(kind, AttemptState.FAILED)
        elsewhere = kind is ExitKind.NO_ROOM and self._cluster.avoid_worker(attempt.job, attempt.worker)
        begun = attempt.state is not AttemptState.ASSIGNED
        end = AttemptEnd(kind, ending.code, begun, attempt.stop_cause, elsewhere)
        ATTEMPT.check(attempt.id, attempt.state, state)
        outcome, now, started = (
            replace(ending, cause=cause_of(end)),
            self._context.clock.now(),
            attempt.started,
        )
        if kind in _STARTED_KINDS and attempt.state in _FORWARD:
            # It ended before its worker reported the start, which was a moment ago.
            started = started or now
            self._count_start(attempt, now)
        self._cluster.put_attempt(
            replace(attempt, state=state, started=started, ended=now, ending=outcome, secret="")
        )
        self._context.metrics.ended("succeeded" if well else kind.value)
        self._moves.over.append(attempt)
        self.moved.set()
        # Its child jobs end with it, because a retry submits them again.
        for child in list(self._cluster.child_jobs.get(attempt.id, ())):
            self.cancel(child, TaskReason.JOB_OVER)
        # Its room is free now, and other jobs may wait for it.
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

    def fail_worker(self, worker: WorkerId, why: str) -> None:
        """Ends all attempts on a lost worker, whose tasks have certainly ended."""
        for view in list(self._cluster.attempts_on_worker[worker].values()):
            self.end(self._cluster.attempts[view.attempt], ExitKind.LOST, Outcome(message=why))
        self._moves.lost.append(worker)
        self.moved.set()

    def cancel(self, job: JobId, cause: TaskReason) -> list[JobId]:
        """Cancels a job and its child jobs. Returns those that had not ended."""
        family = [job]
        for here in family:
            family += self._cluster.children.get(here, {})
        live = [here for here in family if not self._cluster.jobs[here].state.ended]
        # Children first, so that each ends with this cause and not with the end of its parent.
        for here in reversed(live):
            self._stop_siblings(here, TaskState.CANCELLED, StopCause.CANCELLED, Outcome(cause=cause))
            self._update_job(here)
        return live

    def expire_task(self, task: Task) -> None:
        """Fails a task that has reached its wait limit."""
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
        self._update_job(task.job, verdict.job)

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

    def _update_job(self, job_id: JobId, state: JobState | None = None) -> None:
        """Sets the job's state: the given one, or the one derived from its tasks."""
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
        # Workers that were reserved or requested for it are no longer needed.
        self._context.wake()
        for child in self._cluster.children.get(job_id, {}):
            self.cancel(child, TaskReason.JOB_OVER)

    def _job_ending(self, job: Job) -> Outcome:
        """Outcome of the first failed task, otherwise of the first cancelled task, without its value."""
        tasks = self._cluster.tasks[job.id]
        worst = next((task for task in tasks if task.state is TaskState.FAILED), None)
        worst = worst or next((task for task in tasks if task.state is TaskState.CANCELLED), None)
        return replace(worst.ending, result="", result_bytes=0) if worst else Outcome()

    def _counts(self, job: JobId) -> TaskCounts:
        counts = self._cluster.counts[job]
        return TaskCounts(**{state.value: count for state, count in counts.items()})

    def _spent(self, spec: JobSpec, task: Task) -> RetriesUsed:
        """Retries used by the task, or by all tasks of a gang together."""
        tasks: Iterable[Task] = self._cluster.tasks[task.job] if spec.placement.gang else (task,)
        tasks = list(tasks)
        return RetriesUsed(sum(one.failures for one in tasks), sum(one.losses for one in tasks))


def _rules(spec: JobSpec) -> RetryPolicy:
    return RetryPolicy(spec.budget, bool(spec.placement.gang), spec.max_failed_tasks)
