"""Watches of slice changes, and waits that a clock bounds."""

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
    """Changes since the last read. It keeps only the latest of each slice, so that a slow reader costs no memory."""

    def __init__(self) -> None:
        self._waiting: dict[SliceId, SliceStatus] = {}
        self._woken = asyncio.Event()
        self._closed = False

    def put(self, seen: SliceStatus) -> None:
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
    """Sends changes to every watch. A watch that is garbage collected is removed."""

    def __init__(self) -> None:
        self._numbers = count()
        # By number, because the order in which watches wake must not depend on memory addresses.
        self._listeners: WeakValueDictionary[int, SliceWatch] = WeakValueDictionary()

    def listen(self) -> SliceWatch:
        listener = SliceWatch()
        self._listeners[next(self._numbers)] = listener
        return listener

    def publish(self, seen: SliceStatus) -> None:
        for listener in list(self._listeners.values()):
            listener.put(seen)

    def close(self) -> None:
        for listener in list(self._listeners.values()):
            listener.close()


async def wait_at_most(clock: Clock, span: Duration, wait: Callable[[], Awaitable[None]]) -> bool:
    """Returns True if `wait` finished in time."""
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
