"""Keys that wait for work: each once, no key in two hands, urgent ones first, failed ones later and later."""

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

# A key is held once, so this many objects wait at the same time: far beyond what one API server keeps.
KEYS_MAX: Final = 1_000_000
# After so many urgent keys in a row a patient one has its turn: a busy cluster must not starve a relist.
URGENT_IN_A_ROW_MAX: Final = 8
# The first failure is mostly a conflict that the next look at the world heals; a broken object costs a try in five minutes.
BACKOFF: Final = Backoff(first=Duration.of(ms=10), most=Duration.of(minutes=5))


class Priority(Enum):
    """Who waits for the key: somebody who changed something, or nobody in particular."""

    URGENT = "urgent"
    PATIENT = "patient"


class QueueItem(NamedTuple, Generic[K]):
    """A key in hand, and when it became ready by the monotonic clock."""

    key: K
    since: float


class WorkQueue(Generic[K]):
    """Between those who see changes and the workers who act on them.

    A key added many times is worked on once. A key added while it is in hand is worked on once more. Whoever takes a
    key gives it back by `finish` or by `fail`; until then nobody else gets it. `run` must be running for delayed keys.
    """

    def __init__(self, clock: Clock, rng: Rng, backoff: Backoff = BACKOFF) -> None:
        self._clock = clock
        self._rng = rng
        self._backoff = backoff
        self._urgent: OrderedDict[K, float] = OrderedDict()
        self._patient: OrderedDict[K, float] = OrderedDict()
        self._urgent_in_a_row = 0
        # In hand, and the lane of those that were added meanwhile.
        self._hands: dict[K, Priority | None] = {}
        self._failures: dict[K, int] = {}
        self._delays = _Delays[K]()
        self._delayed = asyncio.Event()
        self._takers: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def __len__(self) -> int:
        """How many keys are ready and in nobody's hands."""
        return len(self._urgent) + len(self._patient)

    @property
    def idle(self) -> bool:
        """Nothing is ready and nothing in hand; keys may wait for their time."""
        return not (self._urgent or self._patient or self._hands)

    @property
    def failing(self) -> int:
        """How many keys failed when last worked on."""
        return len(self._failures)

    def add(self, key: K, lane: Priority = Priority.URGENT) -> None:
        """An urgent key is worked on at once, even if it waits for its time or after a failure; a patient one lets a failed key wait."""
        if key in self._hands:
            if self._hands[key] is not Priority.URGENT:
                self._hands[key] = lane
            return
        if lane is Priority.PATIENT and key in self._failures:
            return
        self._delays.drop(key)
        self._ready(key, lane)

    async def take(self) -> QueueItem[K] | None:
        """The next key, as soon as there is one; None once the queue is closed."""
        while not (self._urgent or self._patient or self._closed):
            await self._wait()
        if self._closed:
            return None
        lane = self._next_lane()
        key, since = lane.popitem(last=False)
        self._hands[key] = None
        return QueueItem(key, since)

    def finish(self, key: K, wake_after: Duration | None = None) -> None:
        """It went well. The worker's last word on when to look again stands; an earlier one is void."""
        again = self._hands.pop(key)
        self._failures.pop(key, None)
        if again is not None:
            self._ready(key, again)
        elif wake_after is not None:
            self._delay(key, wake_after)

    def fail(self, key: K, *, at_least: Duration | None = None, at_most: Duration | None = None) -> Duration:
        """It went wrong: tried again after a wait that doubles from failure to failure. Returns the wait.

        If somebody changed something meanwhile, the next try may fare better, and comes as soon as after a first failure.
        """
        changed = self._hands.pop(key) is Priority.URGENT
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        wait = self._backoff.wait(1 if changed else failures, self._rng)
        wait = min(wait, at_most) if at_most else wait
        wait = max(wait, at_least) if at_least else wait
        self._delay(key, wait)
        return wait

    def close(self) -> None:
        """Hands out no more keys, those that wait included; keys in hand are given back as ever."""
        self._closed = True
        while self._takers:
            self._wake_one()

    async def run(self) -> None:
        """Makes delayed keys ready when their time has come."""
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
            # Woken and cancelled in one breath: the key it was woken for needs another taker.
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
    """A heap of keys by the time at which they fall due; the newest time of a key counts, older ones are left to rot."""

    # Rotten entries are swept out when they outnumber the live ones, so the heap stays within twice the number of keys.
    _SWEEP_MIN: Final = 64

    def __init__(self) -> None:
        self._due: dict[K, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._number = count()

    def set(self, key: K, due: float) -> bool:
        """Whether it is now the nearest of all."""
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
        """Takes out the keys whose time has come, the earliest first."""
        keys = list[K]()
        while (nearest := self.nearest()) is not None and nearest <= now:
            key = heapq.heappop(self._heap)[2]
            del self._due[key]
            keys.append(key)
        return keys
