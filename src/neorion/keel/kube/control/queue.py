"""A work queue of keys: each key once, one worker per key, urgent keys first, failed keys with backoff."""

import asyncio
import heapq
from collections import OrderedDict, deque
from collections.abc import Hashable
from enum import Enum
from itertools import count
from typing import Final, Generic, NamedTuple, TypeVar

import anyio

from neorion.keel.base import Duration, QuotaExceeded
from neorion.keel.clock import Clock, Rng
from neorion.keel.run import Backoff

K = TypeVar("K", bound=Hashable)

# A key is queued once, so this many objects wait at the same time: far beyond what one API server stores.
KEYS_MAX: Final = 1_000_000
# After so many urgent keys in a row a patient key is taken, so that a busy cluster does not starve a relist.
URGENT_IN_A_ROW_MAX: Final = 8
# The first failure is mostly a conflict that the next reconcile resolves. A broken object costs one try in five
# minutes.
BACKOFF: Final = Backoff(first=Duration.of(ms=10), most=Duration.of(minutes=5))
# Keys that were refused together do not come back together.
_SPREAD: Final = 0.1


class Priority(Enum):
    """URGENT for a key whose object changed, PATIENT for a key of a list."""

    URGENT = "urgent"
    PATIENT = "patient"


class QueueItem(NamedTuple, Generic[K]):
    """A key that a worker has taken, and the monotonic time since which it was ready."""

    key: K
    since: float


class WorkQueue(Generic[K]):
    """Connects the sources of changes with the workers.

    A key added many times is processed once. A key added while it is processed is processed once more. A worker that
    takes a key returns it with `finish` or `fail`; until then no other worker gets it. `run` must be running for
    delayed keys.
    """

    def __init__(self, clock: Clock, rng: Rng, backoff: Backoff = BACKOFF) -> None:
        self._clock = clock
        self._rng = rng
        self._backoff = backoff
        self._urgent: OrderedDict[K, float] = OrderedDict()
        self._patient: OrderedDict[K, float] = OrderedDict()
        self._urgent_in_a_row = 0
        # Keys that are processed, and the priority of those added meanwhile.
        self._active: dict[K, Priority | None] = {}
        self._failures: dict[K, int] = {}
        self._delays = _Delays[K]()
        self._delayed = asyncio.Event()
        self._takers: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def __len__(self) -> int:
        """The number of keys that are ready."""
        return len(self._urgent) + len(self._patient)

    @property
    def idle(self) -> bool:
        """True if no key is ready or processed; keys may be delayed."""
        return not (self._urgent or self._patient or self._active)

    @property
    def failing(self) -> int:
        """The number of keys that failed when last processed."""
        return len(self._failures)

    def add(self, key: K, lane: Priority = Priority.URGENT) -> None:
        """Adds a key.

        An urgent one is ready at once, even while delayed or failed; a patient one does not shorten a backoff.
        """
        if key in self._active:
            if self._active[key] is not Priority.URGENT:
                self._active[key] = lane
            return
        if lane is Priority.PATIENT and key in self._failures:
            return
        self._delays.drop(key)
        self._ready(key, lane)

    async def take(self) -> QueueItem[K] | None:
        """Takes the next key, waiting for one; None once the queue is closed."""
        while not (self._urgent or self._patient or self._closed):
            await self._wait()
        if self._closed:
            return None
        lane = self._next_lane()
        key, since = lane.popitem(last=False)
        self._active[key] = None
        return QueueItem(key, since)

    def finish(self, key: K, wake_after: Duration | None = None) -> None:
        """Returns a key after success. The worker's delay replaces an earlier one."""
        again = self._active.pop(key)
        self._failures.pop(key, None)
        if again is not None:
            self._ready(key, again)
        elif wake_after is not None:
            self._delay(key, wake_after)

    def fail(self, key: K, *, after: Duration | None = None, at_most: Duration | None = None) -> Duration:
        """Returns a key after a failure, for another try after a wait that doubles with each failure. Returns the wait.

        If an urgent change came meanwhile, the next try comes as soon as after a first failure. A server that named
        the wait with its refusal, `after`, is asked again then, and up to a tenth later.
        """
        changed = self._active.pop(key) is Priority.URGENT
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        if after:
            wait = after + after * (_SPREAD * self._rng.random())
        else:
            wait = self._backoff.wait(1 if changed else failures, self._rng)
            wait = min(wait, at_most) if at_most else wait
        self._delay(key, wait)
        return wait

    def close(self) -> None:
        """Hands out no more keys, waiting ones included. Workers still return the keys they have."""
        self._closed = True
        while self._takers:
            self._wake_one()

    async def run(self) -> None:
        """Makes delayed keys ready when they are due."""
        while True:
            self._delayed.clear()
            now = self._clock.monotonic()
            for key in self._delays.due(now):
                self._ready(key, Priority.URGENT)
            nearest = self._delays.nearest()
            with anyio.move_on_after(max(0.0, nearest - now) if nearest is not None else None):
                await self._delayed.wait()

    def _ready(self, key: K, lane: Priority) -> None:
        if key in self._urgent:
            return
        since = self._patient.get(key)
        if lane is Priority.URGENT:
            self._patient.pop(key, None)
            self._urgent[key] = self._clock.monotonic() if since is None else since
        elif since is None:
            self._patient[key] = self._clock.monotonic()
        if len(self) > KEYS_MAX:
            raise QuotaExceeded(
                "kube.queue_full",
                f"More than {KEYS_MAX:,} keys wait.",
                hint="Watch less, or shard the controller.",
            )
        if since is None:
            self._wake_one()

    def _next_lane(self) -> OrderedDict[K, float]:
        patient_turn = self._patient and self._urgent_in_a_row >= URGENT_IN_A_ROW_MAX
        if self._urgent and not patient_turn:
            self._urgent_in_a_row += 1
            return self._urgent
        self._urgent_in_a_row = 0
        return self._patient

    def _delay(self, key: K, wait: Duration) -> None:
        if self._delays.set(key, self._clock.monotonic() + wait.seconds):
            self._delayed.set()

    async def _wait(self) -> None:
        taker = asyncio.get_running_loop().create_future()
        self._takers.append(taker)
        try:
            await taker
        except BaseException:
            # Woken and cancelled at the same time: the key needs another worker.
            if taker.done() and not taker.cancelled() and len(self):
                self._wake_one()
            raise

    def _wake_one(self) -> None:
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(None)
                return


class _Delays(Generic[K]):
    """A heap of keys by due time. Only the newest time of a key counts; older entries stay until they are swept."""

    # Stale entries are swept when they outnumber the current ones, so the heap stays within twice the number of keys.
    _SWEEP_MIN: Final = 64

    def __init__(self) -> None:
        self._due: dict[K, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._number = count()

    def set(self, key: K, due: float) -> bool:
        """Sets the due time of a key; true if it is now the nearest of all."""
        mark = self._due[key] = (due, next(self._number))
        heapq.heappush(self._heap, (*mark, key))
        if len(self._heap) > self._SWEEP_MIN and len(self._heap) > 2 * len(self._due):
            self._heap = [(*mark, key) for key, mark in self._due.items()]
            heapq.heapify(self._heap)
        return self._heap[0][:2] == mark

    def drop(self, key: K) -> None:
        self._due.pop(key, None)

    def nearest(self) -> float | None:
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> list[K]:
        """Removes and returns the keys that are due, the earliest first."""
        keys = list[K]()
        while (nearest := self.nearest()) is not None and nearest <= now:
            key = heapq.heappop(self._heap)[2]
            del self._due[key]
            keys.append(key)
        return keys
