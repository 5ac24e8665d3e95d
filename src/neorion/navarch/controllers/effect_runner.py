"""Effects under way, one for each thing at a time, beside the loop that asked for them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from neorion.keel.base import Duration, Error, Retry
from neorion.keel.clock import Clock, Rng
from neorion.keel.run import Backoff
from neorion.keel.telemetry import logger

log = logger(__name__)

# Clouds answer in seconds: this many calls at once are more than any of them allows.
AT_ONCE_MAX: Final = 128
# So many more that take minutes, so that short calls do not wait behind them.
LONG_AT_ONCE_MAX: Final = 128
_REST: Final = Backoff(first=Duration.of(seconds=1), most=Duration.of(seconds=60))


class EffectRunner:
    """Runs effects by key. An effect that fails backs off, longer each time, and is then requested again."""

    def __init__(self, clock: Clock, rng: Rng, wake: Callable[[], None]) -> None:
        self._clock = clock
        self._rng = rng
        self._wake = wake
        self._under_way: dict[str, None] = {}
        self._failures: dict[str, int] = {}
        self._group: TaskGroup | None = None
        self._short = anyio.Semaphore(AT_ONCE_MAX, fast_acquire=True)
        self._long = anyio.Semaphore(LONG_AT_ONCE_MAX, fast_acquire=True)
        self._quiet = asyncio.Event()
        self._quiet.set()

    @property
    def busy(self) -> bool:
        return bool(self._under_way)

    async def idle(self) -> None:
        """Returns when nothing is under way and nothing rests."""
        await self._quiet.wait()

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        async with anyio.create_task_group() as group:
            self._group = group
            task_status.started()
            await anyio.sleep_forever()

    def ensure(self, key: str, work: Callable[[], Awaitable[None]], *, long: bool = False) -> None:
        """Begins the errand, unless it is under way or resting."""
        if self._group is not None and key not in self._under_way:
            self._under_way[key] = None
            self._quiet.clear()
            limit = self._long if long else self._short
            self._group.start_soon(self._do, key, work, limit, name=f"navarch.errand {key}")

    async def _do(self, key: str, work: Callable[[], Awaitable[None]], limit: anyio.Semaphore) -> None:
        try:
            while (again := await self._try(work, limit)) is not None:
                # Not a failure: the other side says when to look again.
                await self._clock.sleep(again)
        except Error as error:
            await self._rest(key, error)
        except Exception as error:  # noqa: BLE001 -- one errand's defect must not end the others
            log.failure("errand failed", error, errand=key)
            await self._rest(key, error)
        else:
            self._failures.pop(key, None)
        del self._under_way[key]
        if not self._under_way:
            self._quiet.set()
        self._wake()

    async def _try(self, work: Callable[[], Awaitable[None]], limit: anyio.Semaphore) -> Duration | None:
        """When to try again; None when it is done, or not needed any more: work looks for itself."""
        try:
            async with limit:
                await work()
        except Retry as error:
            if error.after is None:
                raise
            return error.after
        return None

    async def _rest(self, key: str, error: Exception) -> None:
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        wait = _REST.wait(failures, self._rng)
        log.info("errand rests", errand=key, why=str(error), wait=str(wait), failures=failures)
        await self._clock.sleep(wait)
