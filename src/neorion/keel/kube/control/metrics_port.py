"""The port through which controllers report metrics."""

from enum import StrEnum
from typing import Final, Protocol


class ReconcileOutcome(StrEnum):
    """The outcome of one reconcile."""

    DONE = "done"
    CONFLICT = "conflict"
    LATER = "later"
    REFUSED = "refused"
    CRASHED = "crashed"


class ControlMetricsSink(Protocol):
    """Receives metrics; `metrics` has the implementation for Prometheus."""

    def worked(self, controller: str, ending: ReconcileOutcome, waited: float, took: float) -> None:
        """Counts one reconcile: the seconds that its key waited, and the seconds that it took."""
        ...

    def queued(self, controller: str, ready: int, failing: int) -> None: ...

    def wrote(self, verb: str, resource: str) -> None: ...

    def unreadable(self, resource: str, count: int) -> None: ...


class NullMetrics:
    """Discards all metrics."""

    def worked(self, controller: str, ending: ReconcileOutcome, waited: float, took: float) -> None:
        """Does nothing."""

    def queued(self, controller: str, ready: int, failing: int) -> None:
        """Does nothing."""

    def wrote(self, verb: str, resource: str) -> None:
        """Does nothing."""

    def unreadable(self, resource: str, count: int) -> None:
        """Does nothing."""


UNMEASURED: Final = NullMetrics()
