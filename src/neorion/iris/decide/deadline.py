"""Who has waited or run for longer than allowed, and when to look again."""

from collections.abc import Iterable
from dataclasses import dataclass

from neorion.iris.model import AttemptId, JobId, TimeLimits
from neorion.keel.base import Instant


@dataclass(frozen=True, slots=True)
class PendingDeadline:
    """A task that waits since then or, if it has an attempt, runs since then."""

    job: JobId
    task: int
    limits: TimeLimits
    since: Instant
    attempt: AttemptId | None = None

    @property
    def deadline(self) -> Instant | None:
        limit = self.limits.wait if self.attempt is None else self.limits.run
        return None if limit is None else self.since + limit


@dataclass(frozen=True, slots=True)
class Deadlines:
    """`over` have passed their limits; `wake_at` is when the next one will, or None if none has any."""

    over: tuple[PendingDeadline, ...]
    wake_at: Instant | None


def deadlines(tasks: Iterable[PendingDeadline], now: Instant) -> Deadlines:
    over: list[PendingDeadline] = []
    wake_at: Instant | None = None
    for timed in tasks:
        deadline = timed.deadline
        if deadline is None:
            continue
        if deadline <= now:
            over.append(timed)
        elif wake_at is None or deadline < wake_at:
            wake_at = deadline
    return Deadlines(tuple(over), wake_at)
