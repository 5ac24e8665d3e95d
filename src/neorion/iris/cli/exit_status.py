"""Exit code and explanation of a job's end. The exit code is the program's own if it has one."""

from dataclasses import dataclass
from typing import Final

from neorion.iris.client import JobCancelled, JobFailed
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.cli import Exit
from neorion.keel.cli.kit import Column, Table

_SIGNALLED: Final = 128
_TERMINATED: Final = 128 + 15
_KILLED: Final = 128 + 9


@dataclass(frozen=True, slots=True)
class JobExplanation:
    """Explanation of a job's state, with a hint. `code` is its pending reason or the cause of its end."""

    name: str
    state: str
    code: str
    sentence: str
    hint: str


WHY: Final[Table[JobExplanation]] = Table(
    (
        Column("JOB", lambda why: why.name),
        Column("STATE", lambda why: why.state),
        Column("WHY", lambda why: why.sentence),
        Column("HINT", lambda why: why.hint),
        Column("CODE", lambda why: why.code),
    ),
    name=lambda why: why.code,
)


def exit_code(job: pb.Job) -> int:
    """Exit code as for a local program. 125 means that the program has no exit code of its own."""
    ending = job.ending or pb.Ending()
    match job.state, ending.cause:
        case "succeeded", _:
            code = Exit.OK
        case "cancelled", _:
            code = _TERMINATED
        case _, "signal":
            code = _SIGNALLED + ending.code
        case _, "out_of_memory":
            code = _KILLED
        case _, "ran_too_long" | "waited_too_long":
            code = Exit.TIMEOUT
        case _, "exit_code" | "gang_broken" if ending.code:
            code = ending.code
        case _:
            code = Exit.NOT_STARTED
    return code


def why(job: pb.Job) -> JobExplanation:
    """Explains a job's state: pending reason, progress or end."""
    ending = job.ending or pb.Ending()
    match job.state:
        case "failed" | "cancelled":
            error = (JobCancelled if job.state == "cancelled" else JobFailed)(job, ending)
            return JobExplanation(job.name, job.state, ending.cause, error.sentence, error.hint)
        case "succeeded":
            return JobExplanation(job.name, job.state, "done", f"{job.name} succeeded.", "")
        case _ if job.reason:
            return JobExplanation(job.name, job.state, job.reason.code, job.reason.sentence, job.reason.hint)
        case "running":
            running, every = job.tasks.get("running", 0), sum(job.tasks.values())
            hint = f"Follow its output with: iris job logs -f {job.name}."
            return JobExplanation(job.name, job.state, "running", f"{running} of {every} tasks run.", hint)
        case _:
            return JobExplanation(
                job.name, job.state, "new", "It was just submitted and waits for the scheduler.", ""
            )
