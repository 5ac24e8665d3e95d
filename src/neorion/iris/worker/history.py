"""History of attempts that a worker starts or has seen the end of, so that none is started twice.

An order may arrive twice: a controller that was restarted repeats the orders whose start it had not recorded. Between
the two orders the attempt may have ended, been reported and been removed from the runtime, which would then take the
second order for a new attempt.
"""

from collections import Counter, OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from neorion.iris.model import AttemptId
from neorion.iris.ports import AttemptStatus

# More attempts than a worker ends between two connections to its controller.
REMEMBERED_MAX: Final = 10_000


class AttemptHistory:
    """Attempts that are being started, that have ended, and whose ends the controller has recorded."""

    def __init__(self, most: int = REMEMBERED_MAX) -> None:
        self._most = most
        # Each ended attempt with its end; None when the controller has recorded it.
        self._ends: OrderedDict[AttemptId, AttemptStatus | None] = OrderedDict()
        self._starting: Counter[AttemptId] = Counter()

    def record_end(self, seen: AttemptStatus) -> None:
        """Records an end as soon as it is known, before it is reported."""
        if not self.settled(seen.attempt):
            self._put(seen.attempt, seen)

    def settle(self, attempt: AttemptId) -> None:
        self._put(attempt, None)

    def ended(self, attempt: AttemptId) -> bool:
        return attempt in self._ends

    def unsettled(self, attempt: AttemptId) -> list[AttemptStatus]:
        """End of an attempt that the controller has not recorded yet."""
        end = self._ends.get(attempt)
        return [] if end is None else [end]

    def settled(self, attempt: AttemptId) -> bool:
        return attempt in self._ends and self._ends[attempt] is None

    def starting(self, attempt: AttemptId) -> bool:
        return attempt in self._starting

    @contextmanager
    def start(self, attempt: AttemptId) -> Generator[None]:
        """Marks the attempt as starting within the block, so that the runtime does not remove it."""
        self._starting[attempt] += 1
        try:
            yield
        finally:
            self._starting[attempt] -= 1
            if not self._starting[attempt]:
                del self._starting[attempt]

    def _put(self, attempt: AttemptId, end: AttemptStatus | None) -> None:
        self._ends[attempt] = end
        self._ends.move_to_end(attempt)
        if len(self._ends) > self._most:
            self._ends.popitem(last=False)
