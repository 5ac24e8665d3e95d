"""A task beside another one, which ends it."""

import asyncio
from collections.abc import Coroutine
from typing import Any


def create_owned_task(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """Starts a task whose owner cannot wait for it in a supervisor.

    The owner keeps the task and cancels it when it ends itself.
    """
    return asyncio.get_running_loop().create_task(work, name=name)
