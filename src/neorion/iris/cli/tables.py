"""Records and tables of the controller's responses, one for each kind."""

from dataclasses import dataclass
from typing import Final

from neorion.iris.cli.exit_status import why
from neorion.iris.cli.humanize import TONES, amounts, counts, lasted, resources
from neorion.iris.cli.usage_table import UsageRecord, now_columns, whole_columns
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Instant
from neorion.keel.cli.kit import Column, Table
from neorion.keel.cli.kit.humanize import ago, instant_of_ms
from neorion.keel.clock import Clock


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job. `reason` is its pending reason or its failure."""

    name: str
    id: str
    state: str
    tasks: dict[str, int]
    submitted: Instant | None
    ended: Instant | None
    resources: dict[str, object]
    priority: str
    command: str
    parent: str
    reason: str
    cause: str
    exit_code: int
    message: str

    @classmethod
    def of(cls, job: pb.Job) -> "JobRecord":
        ending = job.ending or pb.Ending()
        return cls(
            name=job.name,
            id=job.id,
            state=job.state,
            tasks=dict(job.tasks),
            submitted=instant_of_ms(job.submitted_ms),
            ended=instant_of_ms(job.ended_ms),
            resources=amounts(job.resources),
            priority=job.band,
            command=job.entry,
            parent=job.parent,
            reason=why(job).sentence if job.reason or job.state in ("failed", "cancelled") else "",
            cause=ending.cause,
            exit_code=ending.code,
            message=ending.message,
        )


def jobs_table(clock: Clock) -> Table[JobRecord]:
    return Table(
        (
            Column("NAME", lambda job: job.name),
            Column("STATE", lambda job: job.state, tone=lambda job: TONES.get(job.state)),
            Column("TASKS", lambda job: counts(job.tasks), priority=2),
            Column("SUBMITTED", lambda job: ago(clock.now(), job.submitted), priority=1),
            Column("LASTED", lambda job: lasted(job.submitted, job.ended), priority=4),
            Column("RESOURCES", lambda job: resources(job.resources), priority=3),
            Column("PRIORITY", lambda job: job.priority, wide=True),
            Column("SUBMITTED AT", lambda job: job.submitted, wide=True),
            Column("ENDED AT", lambda job: job.ended, wide=True),
            Column("ID", lambda job: job.id, wide=True),
            Column("PARENT", lambda job: job.parent, wide=True),
            Column("COMMAND", lambda job: job.command, wide=True),
            Column("WHY", lambda job: job.reason, priority=5, wrap=True),
        ),
        name=lambda job: job.name,
        empty="No jobs found. Show ended jobs with --all.",
    )


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A task. `tries` is the number of its attempts, `failures` and `losses` of those that ended so."""

    job: str
    index: int
    state: str
    tries: int
    failures: int
    losses: int
    worker: str
    attempt: str
    since: Instant | None
    usage: UsageRecord
    cause: str
    exit_code: int
    message: str

    @classmethod
    def of(cls, task: pb.Task) -> "TaskRecord":
        ending = task.ending or pb.Ending()
        return cls(
            job=task.job,
            index=task.index,
            state=task.state,
            tries=task.tries,
            failures=task.failures,
            losses=task.losses,
            worker=task.worker,
            attempt=task.attempt,
            since=instant_of_ms(task.since_ms),
            usage=UsageRecord.of(task.usage),
            cause=ending.cause,
            exit_code=ending.code,
            message=ending.message,
        )


def tasks_table(clock: Clock) -> Table[TaskRecord]:
    return Table(
        (
            Column("TASK", lambda task: task.index, right=True),
            Column("STATE", lambda task: task.state, tone=lambda task: TONES.get(task.state)),
            Column("TRIES", lambda task: task.tries, right=True, priority=2),
            Column("SINCE", lambda task: ago(clock.now(), task.since), priority=1),
            Column("WORKER", lambda task: task.worker, priority=3),
            *now_columns(lambda task: task.usage),
            *whole_columns(lambda task: task.usage, wide=True),
            Column("SINCE AT", lambda task: task.since, wide=True),
            Column("FAILURES", lambda task: task.failures, right=True, wide=True),
            Column("LOSSES", lambda task: task.losses, right=True, wide=True),
            Column("ATTEMPT", lambda task: task.attempt, wide=True),
            Column("CODE", lambda task: task.exit_code, right=True, priority=4),
            Column("WHY", lambda task: task.message or task.cause.replace("_", " "), priority=4, wrap=True),
        ),
        name=lambda task: str(task.index),
        empty="No tasks found.",
    )


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """An attempt of a task. It is assigned to its worker before it starts there."""

    number: int
    id: str
    state: str
    worker: str
    assigned: Instant | None
    started: Instant | None
    ended: Instant | None
    usage: UsageRecord
    cause: str
    exit_code: int
    message: str

    @classmethod
    def of(cls, attempt: pb.Attempt) -> "AttemptRecord":
        ending = attempt.ending or pb.Ending()
        return cls(
            number=attempt.number,
            id=attempt.id,
            state=attempt.state,
            worker=attempt.worker,
            assigned=instant_of_ms(attempt.assigned_ms),
            started=instant_of_ms(attempt.started_ms),
            ended=instant_of_ms(attempt.ended_ms),
            usage=UsageRecord.of(attempt.usage),
            cause=ending.cause,
            exit_code=ending.code,
            message=ending.message,
        )


def attempts_table(clock: Clock) -> Table[AttemptRecord]:
    return Table(
        (
            Column("ATTEMPT", lambda attempt: attempt.number, right=True),
            Column("STATE", lambda attempt: attempt.state, tone=lambda attempt: TONES.get(attempt.state)),
            Column("STARTED", lambda attempt: ago(clock.now(), attempt.started), priority=1),
            Column("LASTED", lambda attempt: lasted(attempt.started, attempt.ended), priority=2),
            Column("WORKER", lambda attempt: attempt.worker, priority=3),
            *now_columns(lambda attempt: attempt.usage, wide=True),
            *whole_columns(lambda attempt: attempt.usage),
            Column("ASSIGNED AT", lambda attempt: attempt.assigned, wide=True),
            Column("STARTED AT", lambda attempt: attempt.started, wide=True),
            Column("ENDED AT", lambda attempt: attempt.ended, wide=True),
            Column("ID", lambda attempt: attempt.id, wide=True),
            Column("CODE", lambda attempt: attempt.exit_code, right=True, priority=4),
            Column(
                "WHY",
                lambda attempt: attempt.message or attempt.cause.replace("_", " "),
                priority=4,
                wrap=True,
            ),
        ),
        name=lambda attempt: attempt.id,
        empty="The task has no attempt yet. See why with: iris why JOB.",
    )


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A worker. A draining one finishes its tasks and gets no new ones."""

    id: str
    state: str
    draining: bool
    slice: str
    host: str
    tasks: int
    free: dict[str, object]
    total: dict[str, object]
    attributes: dict[str, str]
    joined: Instant | None

    @classmethod
    def of(cls, worker: pb.Worker) -> "WorkerRecord":
        return cls(
            id=worker.id,
            state=worker.state,
            draining=worker.draining,
            slice=worker.slice,
            host=worker.host,
            tasks=worker.tasks,
            free=amounts(worker.free),
            total=amounts(worker.total),
            attributes=dict(worker.attributes),
            joined=instant_of_ms(worker.joined_ms),
        )

    @property
    def condition(self) -> str:
        return f"{self.state}, draining" if self.draining else self.state


def workers_table(clock: Clock) -> Table[WorkerRecord]:
    return Table(
        (
            Column("WORKER", lambda worker: worker.id),
            Column("STATE", lambda worker: worker.condition, tone=lambda worker: TONES.get(worker.state)),
            Column("TASKS", lambda worker: worker.tasks, right=True),
            Column("FREE", lambda worker: resources(worker.free), priority=1),
            Column("TOTAL", lambda worker: resources(worker.total), priority=2),
            Column("SLICE", lambda worker: worker.slice, priority=3),
            Column("HOST", lambda worker: worker.host, priority=4),
            Column("JOINED", lambda worker: ago(clock.now(), worker.joined), priority=5),
            Column("JOINED AT", lambda worker: worker.joined, wide=True),
            Column(
                "ATTRIBUTES", lambda worker: [f"{k}={v}" for k, v in worker.attributes.items()], wide=True
            ),
        ),
        name=lambda worker: worker.id,
        empty="No workers found.",
    )


@dataclass(frozen=True, slots=True)
class SliceRecord:
    """Machines that are created and deleted together."""

    id: str
    group: str
    state: str
    since: Instant | None
    workers: list[str]
    message: str

    @classmethod
    def of(cls, slice_: pb.Slice) -> "SliceRecord":
        return cls(
            id=slice_.id,
            group=slice_.group,
            state=slice_.state,
            since=instant_of_ms(slice_.since_ms),
            workers=list(slice_.workers),
            message=slice_.message,
        )


def slices_table(clock: Clock) -> Table[SliceRecord]:
    return Table(
        (
            Column("SLICE", lambda slice_: slice_.id),
            Column("GROUP", lambda slice_: slice_.group),
            Column("STATE", lambda slice_: slice_.state, tone=lambda slice_: TONES.get(slice_.state)),
            Column("SINCE", lambda slice_: ago(clock.now(), slice_.since), priority=1),
            Column("SINCE AT", lambda slice_: slice_.since, wide=True),
            Column("WORKERS", lambda slice_: len(slice_.workers), right=True, priority=2),
            Column("MESSAGE", lambda slice_: slice_.message, priority=3, wrap=True),
        ),
        name=lambda slice_: slice_.id,
        empty="No slices found.",
    )


@dataclass(frozen=True, slots=True)
class NameRecord:
    """Name of a changed object."""

    name: str


NAMES: Final[Table[NameRecord]] = Table((Column("NAME", lambda one: one.name),), name=lambda one: one.name)
