"""The wall clock as it would be had nobody set it."""

from neorion.keel.base import Duration, Instant
from neorion.keel.clock.protocols import Clock


class SteadyClock:
    """Reads the wall clock once and goes on from there by the monotonic one: spans between two of its times are true.

    For a process that measures waits by times it writes down. The next process reads the wall clock anew: what was set
    in between counts then, and only then.
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
