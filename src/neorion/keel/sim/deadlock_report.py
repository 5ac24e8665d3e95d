"""Who waits where: the part of a report that lets a person see why nothing moves."""

import asyncio
from collections.abc import Mapping
from inspect import CORO_CREATED, getcoroutinestate
from pathlib import PurePath
from types import CodeType, CoroutineType, FrameType
from typing import Any, Final, cast

from anyio import TaskHandle

from neorion.keel.sim.process import SCENARIO, Process

# A report for a person: past this many tasks the rest is only counted.
_TASKS_MAX: Final = 20


def describe(tasks: Mapping[asyncio.Task[Any], tuple[int, Process | None]]) -> str:
    """One line for each task that waits, or died of an error nobody saw, in the order of their birth."""
    lines = [
        _line(task, process)
        for task, (_, process) in tasks.items()
        if died_unseen(task) or (not task.done() and (process is None or process.alive))
    ]
    if len(lines) > _TASKS_MAX:
        lines[_TASKS_MAX:] = [f"  and {len(lines) - _TASKS_MAX} more"]
    return "\n".join(lines)


def died_unseen(task: asyncio.Task[Any]) -> bool:
    """Whether it ended with an error that nobody has asked for; asyncio keeps the note for its own log."""
    return task.done() and not task.cancelled() and getattr(task, "_log_traceback", False)


def abandon(task: asyncio.Task[Any]) -> None:
    """Closes what a task was to run if it never began: killed in the step that started it, it is no forgotten await.

    anyio starts a task with a wrapper around the coroutine it was given.
    """
    wrapper = task.get_coro()
    if isinstance(wrapper, CoroutineType) and getcoroutinestate(wrapper) == CORO_CREATED:
        frame: FrameType | None = wrapper.cr_frame
        held = frame.f_locals.get("self") if frame else None
        if isinstance(held, TaskHandle):
            cast("TaskHandle[Any, Any]", held).coro.close()


def _line(task: asyncio.Task[Any], process: Process | None) -> str:
    name = f"{task.get_name()} on {SCENARIO if process is None else process.name}"
    if task.done():
        return f"  {name} died of {task.exception()!r}, and nobody asked"
    paused = " (paused)" if process is not None and process.stopped else ""
    return f"  {name}{paused} waits in {_stack(task.get_coro())}"


def _stack(coro: object) -> str:
    """From the outermost coroutine to the one that waits: `serve:12 > Lock.acquire:40 (locks.py)`."""
    calls, file = list[str](), ""
    while coro is not None:
        frame: FrameType | None = getattr(coro, "cr_frame", None) or getattr(coro, "gi_frame", None)
        if frame is None:
            break
        code: CodeType = frame.f_code
        calls.append(f"{code.co_qualname}:{frame.f_lineno}")
        file = PurePath(code.co_filename).name
        coro = getattr(coro, "cr_await", None) or getattr(coro, "gi_yieldfrom", None)
    return f"{' > '.join(calls)} ({file})" if calls else "nothing: it has not begun"
