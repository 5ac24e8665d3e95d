"""Records as clients see them."""

from neorion.iris.model import wire
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.record import Job, Task
from neorion.iris.model.spec import Command
from neorion.iris.serve.desk import Desk


def shown_job(desk: Desk, job: Job) -> pb.Job:
    entry = job.spec.entry
    return pb.Job(
        id=job.id,
        name=job.spec.name,
        state=job.state,
        submitted_ms=wire.ms(job.submitted),
        ended_ms=wire.ms(job.ended),
        ending=wire.ending_message(job.ending),
        tasks={state.value: count for state, count in desk.deck.book.counts[job.id].items() if count},
        reason=wire.reason_message(desk.reason(job.id)),
        resources=wire.resources_message(job.spec.resources),
        entry=" ".join(entry.argv) if isinstance(entry, Command) else "a Python function",
        band=job.spec.band.name.lower(),
        parent=job.parent,
        gang=job.spec.placement.gang,
    )


def shown_task(desk: Desk, task: Task) -> pb.Task:
    attempt = desk.deck.book.attempts.get(task.attempt)
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
        ending=wire.ending_message(task.ending),
    )
