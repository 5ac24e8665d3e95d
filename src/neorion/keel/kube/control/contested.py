"""Limits how often an object is repaired that another writer changes again and again."""

from typing import Final, NamedTuple

from neorion.keel.base import Duration, Retry
from neorion.keel.clock import Clock
from neorion.keel.kube.objects import ObjectKey
from neorion.keel.run import Backoff

# A person, or a tool that runs now and then. One more within a short time is a second controller.
FREE_REPAIRS: Final = 3
WAITS: Final = Backoff(first=Duration.of(seconds=1), most=Duration.of(minutes=10))
# Left alone for so long, an object is contested no more.
_CALM_S: Final = 1_200.0
_OBJECTS_MAX: Final = 10_000

# The resource of a kind, and the object.
ObjectId = tuple[str, ObjectKey]


class ContestedObject(Retry):
    """Another writer changed the object back after each of several repairs. `after` is the wait before the next repair."""

    def __init__(self, thing: ObjectId, after: Duration) -> None:
        resource, key = thing
        where = f" -n {key.namespace}" if key.namespace else ""
        super().__init__(
            "kube.contested",
            f"Another writer changes {resource} {key.name} after each repair.",
            hint=f"Find the writer: kubectl get {resource} {key.name}{where} -o yaml --show-managed-fields.",
            after=after,
        )


class _Repairs(NamedTuple):
    """Repairs in a row to one manifest, and the monotonic time from which the next one is allowed."""

    hashes: str
    in_a_row: int
    allowed_at: float


class RepairLimits:
    """Counts repairs: applies of one and the same manifest that changed its object. Another manifest is applied at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._repairs: dict[ObjectId, _Repairs] = {}

    def check(self, thing: ObjectId, hashes: str) -> None:
        """Raise ContestedObject while the object is not to be repaired to this manifest."""
        known = self._repairs.get(thing)
        if known is None or known.hashes != hashes:
            return
        left = known.allowed_at - self._clock.monotonic()
        if left > 0:
            raise ContestedObject(thing, Duration.of(seconds=left))

    def repaired(self, thing: ObjectId, hashes: str) -> None:
        now = self._clock.monotonic()
        # Removed first, so that the oldest entry comes first.
        known = self._repairs.pop(thing, None)
        if known is not None and known.hashes == hashes and now - known.allowed_at < _CALM_S:
            repairs = known.in_a_row + 1
        else:
            repairs = 1
        wait_s = WAITS.ceiling(repairs - FREE_REPAIRS).seconds if repairs > FREE_REPAIRS else 0.0
        self._repairs[thing] = _Repairs(hashes, repairs, now + wait_s)
        if len(self._repairs) > _OBJECTS_MAX:
            del self._repairs[next(iter(self._repairs))]
