"""Time that stands still until a test moves it, beside processes that really run."""

import asyncio

from anyio.lowlevel import checkpoint

from neorion.keel.base import Duration, Instant
from neorion.keel.clock import EPOCH


class ManualClock:
    def __init__(self) -> None:
        self._ns = 0
        self._sleeping: list[tuple[int, asyncio.Event]] = []

    def now(self) -> Instant:
        return EPOCH + Duration(self._ns)

    def monotonic(self) -> float:
        return self._ns / 1e9

    async def sleep(self, span: Duration) -> None:
        await checkpoint()
        if not span:
            return
        entry = (self._ns + span.ns, asyncio.Event())
        self._sleeping.append(entry)
        try:
            await entry[1].wait()
        finally:
            self._sleeping.remove(entry)

    def advance(self, span: Duration) -> None:
        self._ns += span.ns
        for due, event in self._sleeping:
            if due <= self._ns:
                event.set()
