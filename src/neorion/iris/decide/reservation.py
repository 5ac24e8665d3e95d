"""Keeping room: how a large job gets its turn where small ones would always be quicker.

Per band, the oldest job that has waited longer than HOLD_AFTER, and whose user has no more than an equal part of the
cluster, goes first; if it does not fit, one place that could hold it takes nothing else of its band or below. The place is
the one where most of it fits already, so a held place only gets better, and the job starts when what runs there has ended.
"""

from collections.abc import Iterator

from neorion.iris.decide.worker_table import CandidateList, RequestClass, WorkerTable, amounts, count
from neorion.keel.base import Duration

# Long enough that most jobs never hold anything, short enough that a person who waits for a gang still waits the same day.
RESERVE_AFTER = Duration.of(minutes=10)

# What a held worker has for others: less than nothing, so that not even a task that asks for nothing fits.
UNAVAILABLE = (-(1 << 62),) * 4


def best_reservation(pool: WorkerTable, kind: RequestClass, tasks: int) -> CandidateList | None:
    """The workers to keep for so many tasks, or None if they would not fit even on empty ones."""
    best: tuple[int, str] | None = None
    chosen: CandidateList | None = None
    for row in _places(pool, kind):
        room = sum(count(kind.needs, amounts(pool.workers[spot].total), tasks) for spot in row.worker_indexes)
        if room < tasks:
            continue
        # Ties go by name, which never changes: otherwise two places could take turns being kept and never be free.
        merit = (-sum(_progress(pool, kind, spot) for spot in row.worker_indexes), row.value)
        if best is None or merit < best:
            best, chosen = merit, row
    return chosen


def _places(pool: WorkerTable, kind: RequestClass) -> Iterator[CandidateList]:
    if kind.placement.gang:
        yield from kind.rows
        return
    for spot in kind.row.worker_indexes:
        yield CandidateList(pool.workers[spot].id, [spot])


def _progress(pool: WorkerTable, kind: RequestClass, spot: int) -> int:
    """How much of what one task needs most is free, in thousandths of a task; never falls while nothing else starts."""
    parts = [have * 1000 // need for need, have in zip(kind.needs, pool.free[spot], strict=True) if need]
    return max(0, min(parts, default=1000))
