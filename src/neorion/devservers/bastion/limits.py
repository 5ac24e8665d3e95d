"""Limits of one source and of one user at the bastion."""

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Final

from neorion.keel.clock import Clock

# Sources that are remembered; the one that was seen longest ago goes first.
_SOURCES_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Before a login, a source may have `waiting` connections open, and make `rate` more each second after `burst`.

    All sources together may have `waiting_in_all`. `grace_s` is how long a login may take, apart from one that is confirmed at an
    identity provider; of those `device_logins` may wait at once. `drain_s` is how long open
    sessions are kept when the bastion stops. `post_quantum` refuses clients without post-quantum key exchange.
    """

    waiting: int = 300
    waiting_in_all: int = 500
    rate: float = 10.0
    burst: int = 400
    failures: int = 10
    penalty_s: float = 60.0
    grace_s: float = 20.0
    drain_s: float = 0.0
    post_quantum: bool = False
    device_logins: int = 50


DEFAULT_LIMITS: Final = Limits()


@dataclass(slots=True)
class _Source:
    tokens: float
    seen: float
    waiting: int = 0
    failures: int = 0
    barred_until: float = 0.0


class SourceLimits:
    """The sources that may connect now."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._sources: OrderedDict[str, _Source] = OrderedDict()
        self._waiting = 0

    def connect(self, source: str) -> str:
        """Counts a connection. Returns why it is refused, or nothing; one that is not refused has to `settle`."""
        limits, known = self._limits, self._of(source)
        if known.barred_until > known.seen:
            return "too many failed logins"
        if known.tokens < 1:
            return "too many connections in a short time"
        if known.waiting >= limits.waiting or self._waiting >= limits.waiting_in_all:
            return "too many connections that have not logged in"
        known.tokens -= 1
        known.waiting += 1
        self._waiting += 1
        return ""

    def settle(self, source: str, *, logged_in: bool, refused: bool = False) -> None:
        """The connection has logged in, or is gone without. A probe that only opens a connection does not count as a failure."""
        known = self._of(source)
        known.waiting -= 1
        self._waiting -= 1
        known.failures = 0 if logged_in else known.failures + refused
        if known.failures >= self._limits.failures:
            known.failures = 0
            known.barred_until = known.seen + self._limits.penalty_s

    def _of(self, source: str) -> _Source:
        now = self._clock.monotonic()
        known = self._sources.pop(source, None) or _Source(self._limits.burst, now)
        known.tokens = min(self._limits.burst, known.tokens + (now - known.seen) * self._limits.rate)
        known.seen = now
        self._sources[source] = known
        if len(self._sources) > _SOURCES_MAX:
            self._forget()
        return known

    def _forget(self) -> None:
        quiet = next((name for name, one in self._sources.items() if not one.waiting), None)
        if quiet is not None:
            del self._sources[quiet]


class UserCounts:
    """Counts of the open connections or channels of each user."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    def take(self, user: str, most: int) -> bool:
        if self._open[user] >= most:
            return False
        self._open[user] += 1
        return True

    def give_back(self, user: str) -> None:
        self._open[user] -= 1
        if not self._open[user]:
            del self._open[user]
