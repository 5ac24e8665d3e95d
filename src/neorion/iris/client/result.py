"""What came of a job: the value itself, or the exception as it was raised, with the remote traceback."""

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
            f"{job.name} {_story(ending)}.",
            hint=_HINTS.get(ending.cause, "see what it wrote: iris job logs {name}").format(name=job.name),
        )
        self.ending = ending


class JobCancelled(JobFailed):
    """Somebody called it off."""


class WaitTimeout(Deadline, TimeoutError):
    """The job has not ended within the time that `wait` was given. It goes on."""


_STORIES = {
    "exit_code": "ended with exit code {code}",
    "signal": "was ended by signal {code}",
    "out_of_memory": "used more memory than it asked for",
    "ran_too_long": "ran longer than it may",
    "waited_too_long": "waited for a place longer than it may",
    "cancelled": "was cancelled",
    "job_over": "was cancelled",
    "worker_lost": "lost its worker too often",
    "lost_before_start": "lost its worker before it started",
    "preempted": "was pushed aside too often",
    "gang_restart": "was stopped to start again with its gang",
    "gang_broken": "cannot start whole again: a task of its gang has ended",
    "not_built": "could not be started",
    "no_room": "found no worker with room on its disk for its files",
}
# What their stories leave open, the worker tells.
_EXPLAINED = ("not_built", "no_room")
_HINTS = {"no_room": "free space on the workers, or make its bundle and arguments smaller"}


def end_meanings() -> dict[str, str]:
    """What each cause of an end means, for people."""
    return {cause: f"The job {story.format(code='‹code›')}." for cause, story in _STORIES.items()}


def _story(ending: pb.Ending) -> str:
    told = _STORIES.get(ending.cause, "failed").format(code=ending.code)
    why = ending.message.rstrip(".") if ending.cause in _EXPLAINED else ""
    return f"{told}: {why}" if why else told


class JobResults:
    """The end of a job: its tasks, and with them the values that were small enough to come along."""

    def __init__(self, answer: pb.WaitResponse) -> None:
        self.job: pb.Job = answer.job or pb.Job()
        self.tasks = answer.tasks
        self._small = {blob.digest: blob.body for blob in answer.results}

    def small(self, task: pb.Task) -> bytes:
        """What came along of a task's result, or nothing."""
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
    """What the task raised, or else what is known of its end."""
    ending = task.ending or pb.Ending()
    if task.state == "failed" and ending.result:
        body = small or await fetch(ending.result)
        try:
            load(body)
        except (SystemExit, KeyboardInterrupt) as error:
            # Raised here, `sys.exit` in a task would end the caller's own program without a word.
            failed = JobFailed(job, ending)
            failed.__cause__ = error
            for note in getattr(error, "__notes__", ()):
                failed.add_note(note)
            return failed
        except BaseException as error:  # noqa: BLE001 -- this is the value: whatever the task raised
            return error
    return (JobCancelled if task.state == "cancelled" else JobFailed)(job, ending)


async def _failure(ended: JobResults, fetch: Fetch) -> BaseException:
    """The exception of the first task that failed with one; otherwise what is known of the end."""
    ending = ended.job.ending or pb.Ending()
    if ended.job.state == "cancelled":
        return JobCancelled(ended.job, ending)
    for task in ended.tasks:
        if task.state == "failed" and task.ending is not None and task.ending.result:
            return await failure_of(ended.job, task, ended.small(task), fetch)
    return JobFailed(ended.job, ending)


def load(body: bytes) -> Any:
    """The value; an error is raised as the task raised it, with the task's traceback as a note."""
    outcome = parse(body)
    failed = outcome.status is ResultStatus.ERROR
    try:
        found: Any = pickle.loads(outcome.pickle)  # noqa: S301 -- the caller owns the task
        if failed and not isinstance(found, BaseException):
            raise TypeError(f"{type(found).__name__} is not an exception")  # noqa: TRY301 -- as unreadable as the rest
    except Exception as why:  # noqa: BLE001 -- whatever a class that is another here, or missing, makes of it
        # Left as it is, it would pass for what the task raised.
        found = Terminal(
            "iris.unreadable",
            f"The {'error' if failed else 'value'} of the task cannot be unpickled here: {type(why).__name__}: {why}.",
            hint="Install here what the task has, or let it return plain data.",
        )
        found.__cause__ = why
        failed = True
    if not failed:
        return found
    if isinstance(found, StopIteration | StopAsyncIteration):
        # Whichever loop is around the caller would take it for its own end, and go on as if nothing had happened.
        signal, found = found, RuntimeError(f"The task raised {found!r}.")
        found.__cause__ = signal
    if outcome.text:
        found.add_note(f"In the task:\n{outcome.text}")
    raise found
