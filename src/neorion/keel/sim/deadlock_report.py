"""The report of a deadlock: what each task waits for."""

import asyncio
from collections.abc import Mapping
from inspect import CORO_CREATED, getcoroutinestate
from pathlib import PurePath
from types import CodeType, CoroutineType, FrameType
from typing import Any, Final, cast

from anyio import TaskHandle

from neorion.keel.sim.process import SCENARIO, Process

# The limit of a readable report; further tasks are only counted.
_TASKS_MAX: Final = 20


def describe(tasks: Mapping[asyncio.Task[Any], tuple[int, Process | None]]) -> str:
    """One line for each waiting task and each unnoticed failure, in the order of creation."""
    lines = [
        _line(task, process)
        for task, (_, process) in tasks.items()
        if died_unseen(task) or (not task.done() and (process is None or process.alive))
    ]
    if len(lines) > _TASKS_MAX:
        lines[_TASKS_MAX:] = [f"  and {len(lines) - _TASKS_MAX} more"]
    return "\n".join(lines)


def died_unseen(task: asyncio.Task[Any]) -> bool:
    """True if the task ended with an error that was never retrieved; asyncio keeps the flag for its own log."""
    return task.done() and not task.cancelled() and getattr(task, "_log_traceback", False)


def abandon(task: asyncio.Task[Any]) -> None:
    """Closes the coroutine of a task that was killed before its first step.

    Otherwise Python would report it as never awaited.     anyio starts a task with a wrapper around the coroutine it was given.
    """
    wrapper = task.get_coro()
    if isinstance(wrapper, CoroutineType) and getcoroutinestate(wrapper) == CORO_CREATED:
        frame: FrameType | None = wrapper.cr_frame
        handle = frame.f_locals.get("self") if frame else None
        if isinstance(handle, TaskHandle):
            cast("TaskHandle[Any, Any]", handle).coro.close()


def _line(task: asyncio.Task[Any], process: Process | None) -> str:
    name = f"{task.get_name()} on {SCENARIO if process is None else process.name}"
    if task.done():
        return f"  {name} failed with {task.exception()!r}, which was never retrieved"
    paused = " (paused)" if process is not None and process.stopped else ""
    return f"  {name}{paused} waits in {_stack(task.get_coro())}"


def _stack(coro: object) -> str:
    """The calls from the outermost coroutine to the waiting one: `serve:12 > Lock.acquire:40 (locks.py)`."""
    calls, file = list[str](), ""
    while coro is not None:
        frame: FrameType | None = getattr(coro, "cr_frame", None) or getattr(coro, "gi_frame", None)
        if frame is None:
            break
        code: CodeType = frame.f_code
        calls.append(f"{code.co_qualname}:{frame.f_lineno}")
        file = PurePath(code.co_filename).name
        coro = getattr(coro, "cr_await", None) or getattr(coro, "gi_yieldfrom", None)
    return f"{' > '.join(calls)} ({file})" if calls else "nothing: it has not started"
