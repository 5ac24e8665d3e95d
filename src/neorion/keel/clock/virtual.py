"""Time, chance and identity that repeat: the same seed gives the same run."""

import asyncio
import random
from collections.abc import Callable

from neorion.keel.base.units import Duration, Instant
from neorion.keel.clock.protocols import SomeId
from neorion.keel.clock.ulid import CHANCE_BITS, ulid

# 2026-01-01, so that times in the logs of virtual runs look realistic.
EPOCH = Instant(1_767_225_600_000_000_000)


class VirtualClock:
    """A clock that reads its loop's time. Under `neorion.keel.sim` that loop jumps from event to event.

    `jump` moves the wall clock alone, as an administrator or a leap second would. Durations must not change by it.
    """

    def __init__(self, elapsed: Callable[[], float], start: Instant = EPOCH) -> None:
        self._elapsed = elapsed
        self._start_ns = start.ns

    def now(self) -> Instant:
        return Instant(self._start_ns + round(self._elapsed() * 1e9))

    def monotonic(self) -> float:
        return self._elapsed()

    async def sleep(self, span: Duration) -> None:
        await asyncio.sleep(span.seconds)

    def jump(self, seconds: float) -> None:
        self._start_ns += round(seconds * 1e9)


class SeededIds:
    """Ids that repeat with the seed and still sort by birth."""

    def __init__(self, rng: random.Random, clock: VirtualClock) -> None:
        self._rng = rng
        self._clock = clock

    def new(self, kind: type[SomeId]) -> SomeId:
        return kind.made_of(ulid(self._clock.now().ns // 1_000_000, self._rng.getrandbits(CHANCE_BITS)))

    def secret(self) -> str:
        return f"{self._rng.getrandbits(256):064x}"


def seeded_rng(seed: int | str) -> random.Random:
    return random.Random(seed)  # noqa: S311 -- repeatable on purpose
