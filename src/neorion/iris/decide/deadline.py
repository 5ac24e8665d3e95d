"""Deadlines: tasks that have waited or run too long, and when the next limit is reached."""

from collections.abc import Iterable
from dataclasses import dataclass

from neorion.iris.model import AttemptId, JobId, TimeLimits
from neorion.keel.base import Instant


@dataclass(frozen=True, slots=True)
class PendingDeadline:
    """A task that has been waiting since `since` or, with an attempt, running since then."""

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
    """`over` are tasks past their limits. `wake_at` is the next deadline, or None."""

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
