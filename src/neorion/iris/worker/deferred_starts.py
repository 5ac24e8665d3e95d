"""Starts that wait for disk space: kept until there is some, or until another worker should run them."""

from typing import Final

from neorion.iris.model import AttemptId
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.ports import AttemptExit, AttemptStatus, ExitKind, Phase
from neorion.keel.base import Duration, Retry
from neorion.keel.clock import Clock
from neorion.keel.telemetry import logger

log = logger(__name__)

# A full disk must not end the session or fail the task; space is freed when another task ends.
DISK_FULL_CODES: Final = ("runtime.disk", "iris.worker_disk")
# By then short tasks have ended and freed their space, and another worker may have some.
DISK_WAIT_MAX: Final = Duration.of(minutes=5)


class DeferredStarts:
    """Waiting orders, each with the time of its first try."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._orders: dict[AttemptId, tuple[pb.Start, float]] = {}

    def starts(self) -> list[pb.Start]:
        return [start for start, _ in self._orders.values()]

    def pop(self, attempt: AttemptId) -> float | None:
        """Removes an order. Returns the time of its first try, or None if it does not wait."""
        _, since = self._orders.pop(attempt, (None, None))
        return since

    def clear(self) -> None:
        self._orders.clear()

    def defer(self, start: pb.Start, since: float | None, error: Retry, worker: str) -> AttemptStatus | None:
        """Defers a start. Returns the status to report: WAITING once, or ENDED after the longest wait."""
        attempt, now = AttemptId(start.attempt), self._clock.monotonic()
        if since is not None and now - since >= DISK_WAIT_MAX.seconds:
            why = f"{error.sentence.rstrip('.')} on {worker}, and none came within {DISK_WAIT_MAX}."
            return AttemptStatus(attempt, Phase.ENDED, AttemptExit(ExitKind.NO_ROOM, message=why))
        self._orders[attempt] = (start, now if since is None else since)
        if since is not None:
            return None
        log.warning("a task waits for room on the disk", attempt=attempt, why=error.sentence)
        return AttemptStatus(attempt, Phase.WAITING)
