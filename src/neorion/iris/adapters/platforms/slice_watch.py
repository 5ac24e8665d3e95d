"""Changes of slices on their way to those who listen, and waits that a clock bounds."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from weakref import WeakValueDictionary

import anyio

from neorion.iris.model import SliceId
from neorion.iris.ports import SliceStatus
from neorion.keel.base import Duration
from neorion.keel.clock import Clock


class SliceWatch(AsyncIterator[SliceStatus]):
    """What changed since it was last asked: of each slice the latest, so that a slow listener costs no memory."""

    def __init__(self) -> None:
        self._waiting: dict[SliceId, SliceStatus] = {}
        self._woken = asyncio.Event()
        self._closed = False

    def take(self, seen: SliceStatus) -> None:
        # Again at the end: the order is that of the latest changes.
        self._waiting.pop(seen.id, None)
        self._waiting[seen.id] = seen
        self._woken.set()

    def close(self) -> None:
        self._closed = True
        self._woken.set()

    def next(self) -> SliceStatus | None:
        return self._waiting.pop(next(iter(self._waiting))) if self._waiting else None

    async def woken(self) -> None:
        """Returns when there may be something to take."""
        await self._woken.wait()
        if not self._closed:
            self._woken.clear()

    async def __anext__(self) -> SliceStatus:
        while (seen := self.next()) is None:
            if self._closed:
                raise StopAsyncIteration
            await self.woken()
        return seen


class SliceBroadcaster:
    """Tells everybody who listens. Whoever drops their listener is forgotten."""

    def __init__(self) -> None:
        self._numbers = count()
        # By number, because the order in which listeners wake must not depend on addresses.
        self._listeners: WeakValueDictionary[int, SliceWatch] = WeakValueDictionary()

    def listen(self) -> SliceWatch:
        listener = SliceWatch()
        self._listeners[next(self._numbers)] = listener
        return listener

    def tell(self, seen: SliceStatus) -> None:
        for listener in list(self._listeners.values()):
            listener.take(seen)

    def close(self) -> None:
        for listener in list(self._listeners.values()):
            listener.close()


async def wait_at_most(clock: Clock, span: Duration, wait: Callable[[], Awaitable[None]]) -> bool:
    """Whether `wait` came to its end before the time was up."""
    ended = False
    async with anyio.create_task_group() as group:

        async def alarm() -> None:
            await clock.sleep(span)
            group.cancel_scope.cancel()

        group.start_soon(alarm)
        await wait()
        ended = True
        group.cancel_scope.cancel()
    return ended
