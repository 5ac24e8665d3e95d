"""A clock whose hands are moved by those who wait for it."""

from neorion.keel.base import Duration, Instant
from neorion.keel.clock import SystemClock


class HandClock:
    """Begins now. Whoever sleeps moves it on, at once."""

    def __init__(self) -> None:
        self._start = SystemClock().now()
        self.passed = Duration(0)

    def now(self) -> Instant:
        return self._start + self.passed

    def monotonic(self) -> float:
        return self.passed.seconds

    async def sleep(self, span: Duration) -> None:
        self.passed += span
