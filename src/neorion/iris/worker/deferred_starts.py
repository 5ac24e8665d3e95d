"""Orders that this disk has no room for: kept until there is some, or until another worker should have them."""

from typing import Final

from neorion.iris.model import AttemptId
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.ports import AttemptExit, AttemptStatus, ExitKind, Phase
from neorion.keel.base import Duration, Retry
from neorion.keel.clock import Clock
from neorion.keel.telemetry import logger

log = logger(__name__)

# Want of room is no reason to lose touch, and none to fail a task: another end makes some.
DISK_FULL_CODES: Final = ("runtime.disk", "iris.worker_disk")
# By then what makes room by itself has mostly ended, and another worker may have some.
DISK_WAIT_MAX: Final = Duration.of(minutes=5)


class DeferredStarts:
    """Each order with the moment since when it waits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._orders: dict[AttemptId, tuple[pb.Start, float]] = {}

    def starts(self) -> list[pb.Start]:
        return [start for start, _ in self._orders.values()]

    def take(self, attempt: AttemptId) -> float | None:
        """It does not wait here any more; says since when it did."""
        _, since = self._orders.pop(attempt, (None, None))
        return since

    def clear(self) -> None:
        self._orders.clear()

    def put(self, start: pb.Start, since: float | None, error: Retry, worker: str) -> AttemptStatus | None:
        """What the controller is to hear of it: that it waits, once, or that it has waited long enough."""
        attempt, now = AttemptId(start.attempt), self._clock.monotonic()
        if since is not None and now - since >= DISK_WAIT_MAX.seconds:
            why = f"{error.sentence.rstrip('.')} on {worker}, and none came within {DISK_WAIT_MAX}."
            return AttemptStatus(attempt, Phase.ENDED, AttemptExit(ExitKind.NO_ROOM, message=why))
        self._orders[attempt] = (start, now if since is None else since)
        if since is not None:
            return None
        log.warning("a task waits for room on the disk", attempt=attempt, why=error.sentence)
        return AttemptStatus(attempt, Phase.WAITING)
