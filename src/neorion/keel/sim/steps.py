"""Work of the loop: steps that are ready, and timers in the order of their due times."""

import asyncio
import heapq
from itertools import count
from typing import Final

from neorion.keel.sim.process import Process, Timeline

# Below this a heap with cancelled timers is not worth rebuilding (asyncio uses the same number).
_REBUILD_MIN: Final = 100


class ReadyStep(asyncio.Handle):
    """A callback that is ready. `serial` is the number of its task in order of creation, 0 for a plain callback."""

    __slots__ = ("process", "serial")

    process: Process | None
    serial: int

    def run(self) -> None:
        self._run()


class Timer(asyncio.TimerHandle):
    """A callback with a due time, by the clock of its own host; `waiting` while it is in the heap."""

    __slots__ = ("process", "waiting")

    process: Process | None
    waiting: bool
    serial = 0

    def run(self) -> None:
        self._run()


class Timers:
    """A heap by world time; equal times in the order of setting."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._number = count()
        self._cancelled = 0

    def set(self, timer: Timer) -> None:
        timer.waiting = True
        heapq.heappush(self._heap, (_due(timer), next(self._number), timer))

    def next_due(self) -> float | None:
        """The world time at which the next timer is due, if any is set."""
        while self._heap and self._heap[0][2].cancelled():
            heapq.heappop(self._heap)
            self._cancelled -= 1
        return self._heap[0][0] if self._heap else None

    def move_due(self, now: float, ready: list[ReadyStep | Timer]) -> None:
        heap = self._heap
        while heap and heap[0][0] <= now:
            timer = heapq.heappop(heap)[2]
            timer.waiting = False
            if timer.cancelled():
                self._cancelled -= 1
            else:
                ready.append(timer)

    def count_cancelled(self, timer: Timer) -> None:
        """Rebuilds the heap when most of it is cancelled: timeouts that never fire must not accumulate."""
        if not timer.waiting:
            return
        self._cancelled += 1
        if self._cancelled > _REBUILD_MIN and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if not entry[2].cancelled()]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def retime(self, timeline: Timeline) -> None:
        """Recomputes the due times of a host's timers after its clock has changed its rate."""
        self._heap = [
            (_due(timer) if timer.process and timer.process.timeline is timeline else due, number, timer)
            for due, number, timer in self._heap
        ]
        heapq.heapify(self._heap)

    def clear(self) -> None:
        self._heap.clear()
        self._cancelled = 0


def _due(timer: Timer) -> float:
    return timer.when() if timer.process is None else timer.process.timeline.world(timer.when())
