"""The real thing: the machine's clock, the kernel's chance."""

import asyncio
import random
import time

from neorion.keel.base.units import Duration, Instant
from neorion.keel.clock.protocols import Rng, SomeId
from neorion.keel.clock.ulid import CHANCE_BITS, ulid

# The kernel's random numbers, as `secrets` uses them.
_CHANCE = random.SystemRandom()
# A loop with a resolution of milliseconds would not wait at all for less than half of one.
_SHORTEST_S = 0.001


class SystemClock:
    """CLOCK_BOOTTIME where there is one: a machine that slept has aged, and its leases with it."""

    _source = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def now(self) -> Instant:
        return Instant(time.time_ns())

    def monotonic(self) -> float:
        return time.clock_gettime(self._source)

    async def sleep(self, span: Duration) -> None:
        until = self.monotonic() + span.seconds
        await asyncio.sleep(span.seconds)
        # uvloop rounds to milliseconds and wakes up to one too early.
        while (left := until - self.monotonic()) > 0:  # noqa: ASYNC110 -- it is time itself that is waited for
            await asyncio.sleep(max(left, _SHORTEST_S))


class SystemIds:
    """Ids from the machine's clock and the kernel's chance."""

    def new(self, kind: type[SomeId]) -> SomeId:
        return kind.made_of(ulid(time.time_ns() // 1_000_000, _CHANCE.getrandbits(CHANCE_BITS)))

    def secret(self) -> str:
        import secrets  # noqa: PLC0415 -- it brings much along that few programs need

        return secrets.token_urlsafe(32)


def system_rng() -> Rng:
    return random.Random()  # noqa: S311 -- jitter and tie-breaks, never secrets
