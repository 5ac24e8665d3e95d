"""Converts records to messages. Fields with user data are set only for the owner."""

from msgspec.structs import replace

from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.worker_reports import WorkerReports
from neorion.iris.model import wire
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.record import Attempt, Job, Outcome, Task
from neorion.iris.model.spec import Command
from neorion.iris.serve.authorization import is_owner


class JobMessages:
    """Builder of messages about jobs, tasks and attempts for the caller."""

    def __init__(self, context: ControllerContext, reports: WorkerReports) -> None:
        self._cluster = context.cluster
        self._reasons = context.reasons
        self._reports = reports

    def job(self, job: Job) -> pb.Job:
        own = is_owner(job.spec.name)
        return pb.Job(
            id=job.id,
            name=job.spec.name,
            state=job.state,
            submitted_ms=wire.ms(job.submitted),
            ended_ms=wire.ms(job.ended),
            ending=_ending(job.ending, own=own),
            tasks={state.value: count for state, count in self._cluster.counts[job.id].items() if count},
            reason=wire.reason_message(self._reasons.of(job.id)),
            resources=wire.resources_message(job.spec.resources),
            entry=_entry(job) if own else "",
            band=job.spec.band.name.lower(),
            parent=job.parent,
            gang=job.spec.placement.gang,
        )

    def task(self, task: Task) -> pb.Task:
        attempt = self._cluster.attempts.get(task.attempt)
        stuck = self._reasons.waiting_for_disk(task.job) if attempt is not None else None
        ending = task.ending
        if stuck is not None and stuck is attempt:
            ending = Outcome(message=f"it waits for disk space on {stuck.worker}")
        return pb.Task(
            job=task.job,
            index=task.index,
            state=task.state,
            attempt=task.attempt,
            tries=task.tries,
            failures=task.failures,
            losses=task.losses,
            worker=attempt.worker if attempt else "",
            since_ms=wire.ms(task.since),
            ending=_ending(ending, own=is_owner(self._cluster.jobs[task.job].spec.name)),
            usage=wire.usage_message(self._reports.usage(attempt)) if attempt else None,
        )

    def attempt(self, job: Job, attempt: Attempt) -> pb.Attempt:
        return pb.Attempt(
            id=attempt.id,
            number=attempt.number,
            state=attempt.state,
            worker=attempt.worker,
            assigned_ms=wire.ms(attempt.assigned),
            started_ms=wire.ms(attempt.started),
            ended_ms=wire.ms(attempt.ended),
            ending=_ending(attempt.ending, own=is_owner(job.spec.name)),
            usage=wire.usage_message(self._reports.usage(attempt)),
        )


def _entry(job: Job) -> str:
    entry = job.spec.entry
    return " ".join(entry.argv) if isinstance(entry, Command) else "a Python function"


def _ending(ending: Outcome, *, own: bool) -> pb.Ending:
    return wire.ending_message(ending if own else replace(ending, message="", result="", result_bytes=0))
