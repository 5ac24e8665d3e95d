"""What ends a simulation from outside: Ctrl-C, or a test's time limit. It is not an `Exception` and may strike anywhere."""

import asyncio
from typing import Any


def interruption_in(task: asyncio.Task[Any]) -> BaseException | None:
    """What a task ended with, if it is neither an error nor a cancellation. asyncio keeps it until the task is awaited."""
    # Its method `exception` would mark an error as seen.
    return _interruption(getattr(task, "_exception", None))


def _interruption(error: BaseException | None) -> BaseException | None:
    match error:
        case BaseExceptionGroup():
            return next(filter(None, map(_interruption, error.exceptions)), None)
        case None | Exception() | asyncio.CancelledError():
            return None
        case _:
            return error
