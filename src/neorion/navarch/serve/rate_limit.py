"""A token bucket for each caller."""

from typing import Final

from neorion.keel.base import Duration
from neorion.keel.clock import Clock

# Callers beyond this are forgotten, those with a full bucket first.
CALLERS_MAX: Final = 20_000


class RateLimiter:
    """Buckets of `burst` units that fill by `per_s` units a second."""

    def __init__(self, burst: int, per_s: float, clock: Clock) -> None:
        self._burst = float(burst)
        self._per_s = per_s
        self._clock = clock
        # What was left, and when.
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, caller: str, units: int) -> Duration:
        """Take the units and return zero, or take none and return how long to wait for them."""
        now = self._clock.monotonic()
        left, since = self._left.get(caller, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._per_s)
        if left < units:
            return Duration.of(seconds=(units - left) / self._per_s)
        if len(self._left) >= CALLERS_MAX and caller not in self._left:
            self._forget(now)
        self._left[caller] = left - units, now
        return Duration(0)

    def _forget(self, now: float) -> None:
        for caller, (left, since) in list(self._left.items()):
            if left + (now - since) * self._per_s >= self._burst:
                del self._left[caller]
        while len(self._left) >= CALLERS_MAX:
            del self._left[next(iter(self._left))]
