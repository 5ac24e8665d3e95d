"""Records as clients see them: everybody that they are and how they fare, their owners also what they say."""

from msgspec.structs import replace

from neorion.iris.model import wire
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.record import Attempt, Job, Outcome, Task
from neorion.iris.model.spec import Command
from neorion.iris.serve.authorization import is_owner
from neorion.iris.serve.services import ControllerServices


def job_message(parts: ControllerServices, job: Job) -> pb.Job:
    own = is_owner(job.spec.name)
    return pb.Job(
        id=job.id,
        name=job.spec.name,
        state=job.state,
        submitted_ms=wire.ms(job.submitted),
        ended_ms=wire.ms(job.ended),
        ending=_shown_ending(job.ending, own=own),
        tasks={state.value: count for state, count in parts.context.cluster.counts[job.id].items() if count},
        reason=wire.reason_message(parts.reason(job.id)),
        resources=wire.resources_message(job.spec.resources),
        entry=_entry(job) if own else "",
        band=job.spec.band.name.lower(),
        parent=job.parent,
        gang=job.spec.placement.gang,
    )


def task_message(parts: ControllerServices, task: Task) -> pb.Task:
    cluster = parts.context.cluster
    attempt = cluster.attempts.get(task.attempt)
    stuck = parts.reports.stuck(task.job) if attempt is not None else None
    ending = task.ending
    if stuck is not None and stuck is attempt:
        ending = Outcome(message=f"it waits for room on the disk of {stuck.worker}")
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
        ending=_shown_ending(ending, own=is_owner(cluster.jobs[task.job].spec.name)),
        usage=wire.usage_message(parts.reports.usage(attempt)) if attempt else None,
    )


def attempt_message(parts: ControllerServices, job: Job, attempt: Attempt) -> pb.Attempt:
    return pb.Attempt(
        id=attempt.id,
        number=attempt.number,
        state=attempt.state,
        worker=attempt.worker,
        assigned_ms=wire.ms(attempt.assigned),
        started_ms=wire.ms(attempt.started),
        ended_ms=wire.ms(attempt.ended),
        ending=_shown_ending(attempt.ending, own=is_owner(job.spec.name)),
        usage=wire.usage_message(parts.reports.usage(attempt)),
    )


def _entry(job: Job) -> str:
    entry = job.spec.entry
    return " ".join(entry.argv) if isinstance(entry, Command) else "a Python function"


def _shown_ending(ending: Outcome, *, own: bool) -> pb.Ending:
    return wire.ending_message(ending if own else replace(ending, message="", result="", result_bytes=0))
