"""The control loop: runs one tick, started by a timer or by a wake."""

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
    """Receives the duration and outcome of every tick, for metrics."""

    def __call__(self, name: str, seconds: float, *, failed: bool) -> None: ...


def ignore_ticks(name: str, seconds: float, *, failed: bool) -> None:
    """Does nothing: the observer of a loop that is not measured."""


@dataclass(frozen=True, slots=True)
class LoopTiming:
    """The interval of a loop, and its backoff while ticks fail."""

    every: Duration
    backoff: Backoff = Backoff()


class Loop:
    """Runs `tick` at once, then whenever woken, and at least every `pace.every`.

    A wake carries no data, and several wakes lead to one tick, because each tick reads the full state. A tick may
    return the time until the next one is due: it shortens the wait and never lengthens it. A tick that fails is logged
    and retried with backoff; a wake does not shorten that wait.
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
        """Starts a tick soon. Call it in the loop's own thread; other threads go through `call_soon_threadsafe`."""
        self._woken.set()

    def stop(self) -> None:
        """Finishes the current tick and starts no other."""
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
        # The timer sets the same event as a wake, because a cancelled wait would cost several times as much.
        rest = self._pace.every.seconds
        if self._due is not None:
            rest = min(rest, max(0.0, self._due.seconds))
        timer = asyncio.get_running_loop().call_later(rest, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()
