"""A wall clock that ignores adjustments while the process runs."""

from neorion.keel.base import Duration, Instant
from neorion.keel.clock.protocols import Clock


class SteadyClock:
    """Reads the wall clock once, then advances by the monotonic clock, so differences between its times are exact.

    For a process that measures waits with times that it stores. The next process reads the wall clock again and so
    applies adjustments made in between.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.now()
        self._monotonic = clock.monotonic()

    def now(self) -> Instant:
        return self._began + Duration.of(seconds=self._clock.monotonic() - self._monotonic)

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, span: Duration) -> None:
        await self._clock.sleep(span)
