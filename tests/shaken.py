"""An event loop as on a machine that is busy elsewhere: what is ready waits a while, and answers come in another order.

`NEORION_SHAKE=7 make test` gives it to every test that runs on a loop; seven is the seed. A test that fails only so has counted on
something that nobody promised.
"""

import asyncio
import os
import random
import selectors
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

# How often what is ready is held back, and for how long at most: mostly a moment, sometimes long.
_HELD: Final = ((0.02, 0.1), (0.2, 0.01))
# Some connections are slow from beginning to end.
_SLOW: Final = 0.1
_HELD_SLOW: Final = ((0.8, 0.05),)
_LATE: Final = ((0.02, 0.05), (0.2, 0.005))


def _draw(rng: random.Random, odds: tuple[tuple[float, float], ...]) -> float:
    for share, most in odds:
        if rng.random() < share:
            return rng.uniform(0, most)
    return 0.0


class _Holding(selectors.DefaultSelector):
    """Says of some files only after a while that they are ready. They stay ready meanwhile, so nothing is lost."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng
        self._until: dict[int, float] = {}
        self._slow: set[int] = set()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        end = None if timeout is None else time.monotonic() + max(0.0, timeout)
        while True:
            left = None if end is None else max(0.0, end - time.monotonic())
            ready = super().select(left)
            now = time.monotonic()
            free = [(key, events) for key, events in ready if self._free(key.fd, now)]
            if free or (end is not None and now >= end):
                for key, _ in free:
                    self._until.pop(key.fd, None)
                return free
            soonest = min((self._until[key.fd] for key, _ in ready), default=now)
            time.sleep(max(0.0, min(soonest, end if end is not None else soonest) - now))

    def _free(self, fd: int, now: float) -> bool:
        until = self._until.get(fd)
        if until is None:
            odds = _HELD_SLOW if fd in self._slow else _HELD
            until = self._until[fd] = now + _draw(self._rng, odds)
        return now >= until

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

    def __init__(self, seed: int) -> None:
        self._shake = random.Random(seed)
        super().__init__(_Holding(self._shake))

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, context: Any = None) -> asyncio.TimerHandle:
        return super().call_at(when + _draw(self._shake, _LATE), callback, *args, context=context)


def backend() -> tuple[str, Mapping[str, Any]]:
    """What anyio runs tests with."""
    seed = os.environ.get("NEORION_SHAKE")
    return "asyncio", {"loop_factory": lambda: ShakenLoop(int(seed))} if seed else {}
