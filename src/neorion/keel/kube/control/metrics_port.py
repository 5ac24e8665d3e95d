"""What controllers tell of their work to whoever counts."""

from enum import StrEnum
from typing import Final, Protocol


class ReconcileOutcome(StrEnum):
    """How one reconcile ended."""

    DONE = "done"
    CONFLICT = "conflict"
    LATER = "later"
    REFUSED = "refused"
    CRASHED = "crashed"


class ControlMetricsSink(Protocol):
    """Counts; `metrics` has the one that Prometheus reads."""

    def worked(self, controller: str, ending: ReconcileOutcome, waited: float, took: float) -> None:
        """One reconcile: how many seconds its key was ready before, and how many it took."""
        ...

    def queued(self, controller: str, ready: int, failing: int) -> None: ...

    def wrote(self, verb: str, resource: str) -> None: ...

    def unreadable(self, resource: str, count: int) -> None: ...


class NullMetrics:
    """Counts nothing."""

    def worked(self, controller: str, ending: ReconcileOutcome, waited: float, took: float) -> None:
        """Nobody asked."""

    def queued(self, controller: str, ready: int, failing: int) -> None:
        """Nobody asked."""

    def wrote(self, verb: str, resource: str) -> None:
        """Nobody asked."""

    def unreadable(self, resource: str, count: int) -> None:
        """Nobody asked."""


UNMEASURED: Final = NullMetrics()
