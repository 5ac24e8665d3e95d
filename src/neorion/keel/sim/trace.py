"""The trace of a run: one line for each notable event, and one hash of them all."""

from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from typing import Final

from neorion.keel.sim.process import here

# Enough to see the cause of a failure; the hash also covers dropped lines.
LINES_MAX: Final = 5_000


class Trace:
    """Bounded lines and an unbounded hash: two runs are equal when their digests are."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._hash = blake2b(digest_size=8)
        self._lines: deque[str] = deque(maxlen=LINES_MAX)

    def add(self, event: str) -> None:
        """Records an action of the current host. The text must repeat: no addresses of objects, no real times."""
        line = f"{self._now():.6f} {here()}: {event}"
        self._hash.update(line.encode())
        self._lines.append(line)

    def tail(self, count: int) -> tuple[str, ...]:
        return tuple(self._lines)[-count:]

    def digest(self, *more: int) -> str:
        total = self._hash.copy()
        total.update(repr(more).encode())
        return total.hexdigest()
