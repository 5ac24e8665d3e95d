"""Event loop of the fork server: ready file descriptors and due timers."""

import heapq
import select
from collections.abc import Callable
from itertools import count

from neorion.iris.adapters.runtimes.process.syscalls import boottime_ns

# Cancelled timers in the heap before it is rebuilt.
DEAD_MAX = 256

Act = Callable[[], None]


class Timer:
    """Scheduled call that can be cancelled."""

    __slots__ = ("act",)

    def __init__(self, act: Act) -> None:
        self.act: Act | None = act

    def cancel(self) -> None:
        self.act = None


class SelectorLoop:
    """Loop over epoll events and timers. A handler must tolerate a call without an event."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._handlers: dict[int, Act] = {}
        self._heap: list[tuple[int, int, Timer]] = []
        self._numbers = count()
        self._clear_at = DEAD_MAX

    def watch(self, fd: int, act: Act) -> None:
        self._poll.register(fd, select.EPOLLIN)
        self._handlers[fd] = act

    def want(self, fd: int, *, read: bool, write: bool) -> None:
        self._poll.modify(fd, (select.EPOLLIN if read else 0) | (select.EPOLLOUT if write else 0))

    def unwatch(self, fd: int) -> None:
        self._poll.unregister(fd)
        del self._handlers[fd]

    def after(self, span_ns: int, act: Act) -> Timer:
        timer = Timer(act)
        heapq.heappush(self._heap, (boottime_ns() + span_ns, next(self._numbers), timer))
        if len(self._heap) > self._clear_at:
            self._heap = [entry for entry in self._heap if entry[2].act is not None]
            heapq.heapify(self._heap)
            self._clear_at = DEAD_MAX + 2 * len(self._heap)
        return timer

    def turn(self, *, wait: bool) -> None:
        for fd, _ in self._poll.poll(self._seconds_to_next() if wait else 0):
            act = self._handlers.get(fd)
            if act is not None:
                act()
        while self._heap and self._heap[0][0] <= boottime_ns():
            act = heapq.heappop(self._heap)[2].act
            if act is not None:
                act()

    def _seconds_to_next(self) -> float | None:
        while self._heap and self._heap[0][2].act is None:
            heapq.heappop(self._heap)
        return max(0, self._heap[0][0] - boottime_ns()) / 1e9 if self._heap else None
