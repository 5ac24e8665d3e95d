"""Result of a job: its value, or the exception that the task raised, with the remote traceback."""

import pickle
from collections.abc import Awaitable, Callable
from typing import Any

from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.result_format import ResultStatus, parse
from neorion.keel.base import Deadline, Terminal

Fetch = Callable[[str], Awaitable[bytes]]


class JobFailed(Terminal):
    """The job ended without a value and without an exception of its own: killed, out of memory, not started, exit code."""

    def __init__(self, job: pb.Job, ending: pb.Ending) -> None:
        super().__init__(
            f"iris.{ending.cause or 'failed'}",
            f"{job.name} {_describe(ending)}.",
            hint=_HINTS.get(ending.cause, "See its output with: iris job logs {name}.").format(name=job.name),
        )
        self.ending = ending


class JobCancelled(JobFailed):
    """The job was cancelled."""


class WaitTimeout(Deadline, TimeoutError):
    """The job has not ended within the timeout of `wait`. It continues to run."""


_CAUSES = {
    "exit_code": "ended with exit code {code}",
    "signal": "was ended by signal {code}",
    "out_of_memory": "used more memory than it requested",
    "ran_too_long": "ran longer than its timeout",
    "waited_too_long": "waited longer than its scheduling timeout",
    "cancelled": "was cancelled",
    "job_over": "was cancelled",
    "worker_lost": "lost its worker too often",
    "lost_before_start": "lost its worker before it started",
    "preempted": "was preempted too often",
    "gang_restart": "was stopped to restart with its gang",
    "gang_broken": "cannot restart, because a task of its gang has ended",
    "not_built": "could not be started",
    "no_room": "found no worker with enough disk space for its files",
}
# Causes whose details are in the worker's message.
_DETAILED_CAUSES = ("not_built", "no_room")
_HINTS = {"no_room": "Free disk space on the workers, or make the job's bundle and arguments smaller."}


def end_meanings() -> dict[str, str]:
    """Readable meaning of each cause of an end."""
    return {cause: f"The job {text.format(code='‹code›')}." for cause, text in _CAUSES.items()}


def _describe(ending: pb.Ending) -> str:
    text = _CAUSES.get(ending.cause, "failed").format(code=ending.code)
    why = ending.message.rstrip(".") if ending.cause in _DETAILED_CAUSES else ""
    return f"{text}: {why}" if why else text


class JobResults:
    """End of a job: its tasks, and the results that were small enough for the response."""

    def __init__(self, answer: pb.WaitResponse) -> None:
        self.job: pb.Job = answer.job or pb.Job()
        self.tasks = answer.tasks
        self._small = {blob.digest: blob.body for blob in answer.results}

    def small(self, task: pb.Task) -> bytes:
        """Result of a task if the response contains it, otherwise empty."""
        return self._small.get(task.ending.result, b"") if task.ending is not None else b""


async def value_of(ended: JobResults, fetch: Fetch) -> Any:
    if ended.job.state != "succeeded":
        raise await _failure(ended, fetch)
    values = [await value_of_task(task, ended.small(task), fetch) for task in ended.tasks]
    return values[0] if len(values) == 1 else values


async def value_of_task(task: pb.Task, small: bytes, fetch: Fetch) -> Any:
    ending = task.ending
    if ending is None or not ending.result:
        return None
    return load(small or await fetch(ending.result))


async def failure_of(job: pb.Job, task: pb.Task, small: bytes, fetch: Fetch) -> BaseException:
    """Exception of the task, or an error made from the cause of its end."""
    ending = task.ending or pb.Ending()
    if task.state == "failed" and ending.result:
        body = small or await fetch(ending.result)
        try:
            load(body)
        except (SystemExit, KeyboardInterrupt) as error:
            # If it were raised here, `sys.exit` in a task would silently end the caller's program.
            failed = JobFailed(job, ending)
            failed.__cause__ = error
            for note in getattr(error, "__notes__", ()):
                failed.add_note(note)
            return failed
        except BaseException as error:  # noqa: BLE001 -- the task may raise any error
            return error
    return (JobCancelled if task.state == "cancelled" else JobFailed)(job, ending)


async def _failure(ended: JobResults, fetch: Fetch) -> BaseException:
    """Exception of the first task that raised one, otherwise an error made from the job's end."""
    ending = ended.job.ending or pb.Ending()
    if ended.job.state == "cancelled":
        return JobCancelled(ended.job, ending)
    for task in ended.tasks:
        if task.state == "failed" and task.ending is not None and task.ending.result:
            return await failure_of(ended.job, task, ended.small(task), fetch)
    return JobFailed(ended.job, ending)


def load(body: bytes) -> Any:
    """Unpickles a value. An error is raised as the task raised it, with the task's traceback as a note."""
    outcome = parse(body)
    failed = outcome.status is ResultStatus.ERROR
    try:
        value: Any = pickle.loads(outcome.pickle)  # noqa: S301 -- the caller owns the task
        if failed and not isinstance(value, BaseException):
            raise TypeError(f"{type(value).__name__} is not an exception")  # noqa: TRY301 -- handled like any unreadable value
    except Exception as why:  # noqa: BLE001 -- a class that differs here or is missing may raise anything
        # Unchanged, it would look like an exception of the task.
        value = Terminal(
            "iris.unreadable",
            f"The {'error' if failed else 'value'} of the task cannot be unpickled here: {type(why).__name__}: {why}.",
            hint="Install the task's packages here, or return plain data from the task.",
        )
        value.__cause__ = why
        failed = True
    if not failed:
        return value
    if isinstance(value, StopIteration | StopAsyncIteration):
        # A loop around the caller would treat it as its own end and continue silently.
        signal, value = value, RuntimeError(f"The task raised {value!r}.")
        value.__cause__ = signal
    if outcome.text:
        value.add_note(f"In the task:\n{outcome.text}")
    raise value
