"""An event loop as on a machine that is busy elsewhere: what is ready waits a while, and answers come in another order.

`NEORION_SHAKE=7 make test` gives it to every test that runs on a loop; seven is the seed. It also runs the tests in another
order, beside other neighbours. A test that fails only so has counted on something that nobody promised.
"""

import asyncio
import os
import selectors
from collections.abc import Callable, Mapping, Sequence
from threading import Event
from typing import Any, Final

import pytest

from neorion.keel.clock import Rng, SystemClock, seeded_rng

# How often, and for how long at most.
Odds = tuple[tuple[float, float], ...]
_HELD: Final[Odds] = ((0.02, 0.1), (0.2, 0.01))
_LATE: Final[Odds] = ((0.02, 0.05), (0.2, 0.005))
# Some connections are slow from beginning to end.
_SLOW: Final = 0.1
_HELD_SLOW: Final[Odds] = ((0.8, 0.05),)


def _draw(rng: Rng, odds: Odds) -> float:
    return next((rng.uniform(0, most) for share, most in odds if rng.random() < share), 0.0)


class _Holding(selectors.DefaultSelector):
    """Says of some files only after a while that they are ready. They stay ready meanwhile, so nothing is lost."""

    def __init__(self, rng: Rng) -> None:
        super().__init__()
        self._rng = rng
        self._time = SystemClock().monotonic
        self._rest = Event().wait
        self._until: dict[int, float] = {}
        self._slow: set[int] = set()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        end = float("inf") if timeout is None else self._time() + timeout
        while True:
            left = None if timeout is None else max(0.0, end - self._time())
            ready = super().select(left)
            now = self._time()
            free = [(key, events) for key, events in ready if self._free(key.fd, now)]
            if free or now >= end:
                for key, _ in free:
                    del self._until[key.fd]
                return free
            soonest = min((self._until[key.fd] for key, _ in ready), default=now)
            self._rest(max(0.0, min(soonest, end) - now))

    def _free(self, fd: int, now: float) -> bool:
        if fd not in self._until:
            self._until[fd] = now + _draw(self._rng, _HELD_SLOW if fd in self._slow else _HELD)
        return now >= self._until[fd]

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = super().register(fileobj, events, data)
        if self._rng.random() < _SLOW:
            self._slow.add(key.fd)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = super().unregister(fileobj)
        self._until.pop(key.fd, None)
        self._slow.discard(key.fd)
        return key


class ShakenLoop(asyncio.SelectorEventLoop):
    """Timers are late too, never early."""

    def __init__(self, seed: str) -> None:
        self._shake = seeded_rng(seed)
        super().__init__(_Holding(self._shake))

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        return super().call_at(when + _draw(self._shake, _LATE), callback, *args, context=context)


def seed() -> str:
    return os.environ.get("NEORION_SHAKE", "")


def backend() -> tuple[str, Mapping[str, Any]]:
    """What anyio runs tests with. The same seed for each of them: one that failed can be run alone."""
    return "asyncio", {"loop_factory": lambda: ShakenLoop(seed())} if seed() else {}


def reordered(tests: Sequence[pytest.Item], seed: str) -> list[pytest.Item]:
    """Those of a file stay together, as do those that share what is slow to make; the files change places, and they in theirs."""
    rng = seeded_rng(seed)
    order = {test.path: rng.random() for test in tests}
    return sorted(tests, key=lambda test: (order[test.path], rng.random()))
