"""Interruptions of a simulation: Ctrl-C, or a test's time limit. They are not `Exception`s and may occur anywhere."""

import asyncio
from typing import Any


def interruption_in(task: asyncio.Task[Any]) -> BaseException | None:
    """The exception that ended a task, if it is neither an error nor a cancellation.

    asyncio keeps it until it is retrieved.
    """
    # The task's method `exception` would mark an error as retrieved.
    return _interruption(getattr(task, "_exception", None))


def _interruption(error: BaseException | None) -> BaseException | None:
    match error:
        case BaseExceptionGroup():
            return next(filter(None, map(_interruption, error.exceptions)), None)
        case None | Exception() | asyncio.CancelledError():
            return None
        case _:
            return error
