"""What is refused or allowed as soon as a server has heard of it."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import pytest

from neorion.keel.base import Duration, Error
from neorion.keel.clock import SystemClock

T = TypeVar("T")

# How long a server may take to hear of a new policy, quota or account.
PATIENCE_S = 120.0
AGAIN = Duration.of(ms=100)


async def refused(request: Callable[[], Awaitable[object]], words: str) -> None:
    """Policies are heard of a moment after they are made."""
    told = "nothing"
    with anyio.move_on_after(PATIENCE_S):
        while True:
            try:
                await request()
            except Error as error:
                told = error.sentence
                if words in told:
                    return
            await SystemClock().sleep(AGAIN)
    pytest.fail(f"not refused with {words!r}, but: {told}")


async def allowed(request: Callable[[], Awaitable[T]]) -> T:
    """Quotas and accounts of a new namespace are there a moment after it."""
    told = "nothing"
    with anyio.move_on_after(PATIENCE_S):
        while True:
            try:
                return await request()
            except Error as error:
                told = error.sentence
            await SystemClock().sleep(AGAIN)
    pytest.fail(f"refused: {told}")
