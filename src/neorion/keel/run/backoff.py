"""Retries: the waits between attempts, and the loop that calls again."""

from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from msgspec import Struct

from neorion.keel.base.errors import Retry
from neorion.keel.base.units import Duration
from neorion.keel.clock.protocols import Clock, Rng

T = TypeVar("T")


class Backoff(Struct, frozen=True):
    """Doubling waits with full jitter: those who failed together do not come back together."""

    first: Duration = Duration.of(ms=100)
    most: Duration = Duration.of(seconds=30)
    attempts: int = 8

    def ceiling(self, failures: int) -> Duration:
        """The longest wait after so many failures in a row."""
        return min(self.most, self.first * 2 ** min(failures - 1, 32))

    def wait(self, failures: int, rng: Rng) -> Duration:
        return self.ceiling(failures) * rng.random()

    def waits(self, rng: Rng) -> Iterator[Duration]:
        """One wait between each two attempts."""
        return (self.wait(failures, rng) for failures in range(1, self.attempts))


async def retry(call: Callable[[], Awaitable[T]], backoff: Backoff, clock: Clock, rng: Rng) -> T:
    """Calls until the call succeeds, the attempts are used up, or the error is not a `Retry`.

    The wait is never shorter than the `after` of the error, which the other side computed from its own state.
    """
    for wait in backoff.waits(rng):
        try:
            return await call()
        except Retry as error:
            await clock.sleep(max(wait, error.after) if error.after else wait)
    return await call()
