"""The turning wheel: one tick, run by a timer and by a wake alike."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import anyio

from neorion.keel.base.units import Duration
from neorion.keel.clock.protocols import Clock, Rng
from neorion.keel.run.backoff import Backoff
from neorion.keel.telemetry import logger

log = logger(__name__)


class TickObserver(Protocol):
    """Is told of every tick; metrics stand behind it."""

    def __call__(self, name: str, seconds: float, *, failed: bool) -> None: ...


def ignore_ticks(name: str, seconds: float, *, failed: bool) -> None:
    """For loops nobody measures."""


@dataclass(frozen=True, slots=True)
class LoopTiming:
    """How often a loop turns by itself, and how it slows down while its ticks fail."""

    every: Duration
    backoff: Backoff = Backoff()


class Loop:
    """Runs `tick` at once, then whenever woken, and at least every `pace.every`.

    A wake carries no data and many wakes are one: the tick reads the whole truth each time. A tick that knows when the next
    one matters returns how long that is; it shortens the rest and never lengthens it. A tick that fails is logged
    and retried by the next tick, later and later while it goes on failing; a wake does not shorten that wait.
    """

    def __init__(
        self,
        name: str,
        tick: Callable[[], Awaitable[Duration | None]],
        pace: LoopTiming,
        clock: Clock,
        rng: Rng,
        watch: TickObserver = ignore_ticks,
    ) -> None:
        self.name = name
        self._tick = tick
        self._pace = pace
        self._clock = clock
        self._rng = rng
        self._watch = watch
        self._woken = asyncio.Event()
        self._stopping = asyncio.Event()
        self._due: Duration | None = None

    def wake(self) -> None:
        """From the loop's own thread; other threads go through `call_soon_threadsafe`."""
        self._woken.set()

    def stop(self) -> None:
        """The tick under way is finished; no other begins."""
        self._stopping.set()
        self._woken.set()

    async def run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            # Cleared before the tick: a wake during it means that it may have read too early.
            self._woken.clear()
            failures = 0 if await self._turn() else failures + 1
            if failures:
                with anyio.move_on_after(self._pace.backoff.wait(failures, self._rng).seconds):
                    await self._stopping.wait()
            else:
                await self._rest()

    async def _turn(self) -> bool:
        began = self._clock.monotonic()
        try:
            self._due = await self._tick()
        except Exception as error:  # noqa: BLE001 -- whatever it was, the next tick tries again
            log.failure("tick failed", error, loop=self.name)
            self._watch(self.name, self._clock.monotonic() - began, failed=True)
            return False
        self._watch(self.name, self._clock.monotonic() - began, failed=False)
        return True

    async def _rest(self) -> None:
        # The timer is one more that wakes: a cancelled wait would cost several times as much.
        rest = self._pace.every.seconds
        if self._due is not None:
            rest = min(rest, max(0.0, self._due.seconds))
        timer = asyncio.get_running_loop().call_later(rest, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()
