"""State of one scale group during a decision: its slices, those on their way, and obstacles to growth."""

from collections.abc import Iterator

from neorion.iris.decide.bins import SliceBins
from neorion.iris.model import (
    GroupView,
    PendingCode,
    PendingReason,
    ScaleFailure,
    ScaleFailureKind,
    SliceState,
    SliceView,
)
from neorion.keel.base import Duration, Instant

# First pause after a failure; each further failure in a row doubles it.
_PAUSES = {
    ScaleFailureKind.FAILED: Duration.of(seconds=30),
    ScaleFailureKind.NO_CAPACITY: Duration.of(minutes=1),
    # People change quotas, which takes longer.
    ScaleFailureKind.QUOTA: Duration.of(minutes=5),
    ScaleFailureKind.NO_QUOTA: Duration.of(minutes=30),
}
# A longer pause saves nothing, and delays the use of a recovered group.
PAUSE_MAX = Duration.of(minutes=30)
_DOUBLINGS_MAX = 16
_BOOTING = (SliceState.CREATING, SliceState.BOOTSTRAPPING)

_CODES = {
    ScaleFailureKind.FAILED: PendingCode.GROUP_BACKOFF,
    ScaleFailureKind.NO_CAPACITY: PendingCode.GROUP_CAPACITY,
    ScaleFailureKind.QUOTA: PendingCode.GROUP_QUOTA,
    ScaleFailureKind.NO_QUOTA: PendingCode.GROUP_NO_QUOTA,
}


def paused_until(trouble: ScaleFailure) -> Instant:
    pause = _PAUSES[trouble.kind] * 2 ** min(trouble.times - 1, _DOUBLINGS_MAX)
    return trouble.at + min(pause, PAUSE_MAX)


def after_trouble(before: ScaleFailure | None, kind: ScaleFailureKind, now: Instant) -> ScaleFailure:
    """Counts a failure. Failures within a pause belong to requests made before it, and count as the same one."""
    if before is None or before.kind is not kind:
        return ScaleFailure(kind, 1, now)
    return ScaleFailure(kind, before.times + (now >= paused_until(before)), now)


class ScaleGroupState:
    """All existing slices count towards the maximum; only usable or booting ones count towards the minimum."""

    def __init__(self, view: GroupView, now: Instant) -> None:
        self.view = view
        self.now = now
        self.bins = SliceBins(view.shape)
        self.created = 0
        self.needed = False
        given_up = {each.id: deadline <= now for each, deadline in self.deadlines()}
        self.overdue = [each for each in view.slices if given_up.get(each.id)]
        left = [each for each in view.slices if not given_up.get(each.id)]
        self.booting = [each for each in left if each.state in _BOOTING]
        there = [each for each in left if each.state is SliceState.READY]
        self.ready = [each for each in there if each.drained is None]
        self.drained = [each for each in there if each.drained is not None]
        self.failed = [each for each in left if each.state is SliceState.FAILED]
        self.bins.add(len(self.booting))

    @property
    def live(self) -> int:
        return len(self.booting) + len(self.ready) + self.created

    @property
    def coming(self) -> int:
        return len(self.booting) + self.created

    def deadlines(self) -> Iterator[tuple[SliceView, Instant]]:
        """Yields deadlines of incomplete slices. A slice on which tasks still run has none."""
        patience = self.view.patience
        for each in self.view.slices:
            if each.state in _BOOTING:
                yield each, each.created + patience.boot
            elif each.state is SliceState.READY and each.short is not None and each.idle is not None:
                yield each, each.short + patience.join

    def may_create(self) -> int:
        """Number of slices that may be created now. After a failure and its pause it is one at a time until one is ready."""
        left = max(0, self.view.shape.slices - len(self.view.slices) - self.created)
        trouble = self.view.trouble
        if trouble is None:
            return left
        if self.now < paused_until(trouble):
            return 0
        return min(left, max(0, 1 - self.coming))

    def create(self, slices: int) -> None:
        self.created += slices
        self.bins.add(slices)

    def obstacle(self) -> PendingReason:
        """Reason why the group may not grow."""
        trouble, most = self.view.trouble, self.view.shape.slices
        has = len(self.view.slices) + self.created
        if trouble is None or has >= most:
            return PendingReason(PendingCode.GROUP_MAX, most, has, self.view.name)
        return PendingReason(_CODES[trouble.kind], best=trouble.times, subject=self.view.name)
