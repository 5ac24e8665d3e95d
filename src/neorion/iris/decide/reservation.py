"""Reservation of workers for a large job, which smaller jobs would otherwise delay forever.

Per band, the oldest job that has waited longer than RESERVE_AFTER, and whose user has at most an equal share of the
cluster, goes first. If it does not fit, workers that could hold it accept no other tasks of its band or below.
The workers with the most free room for it are chosen, so their room only grows until the job starts.
"""

from collections.abc import Iterator

from neorion.iris.decide.worker_table import CandidateList, RequestClass, WorkerTable, amounts, count
from neorion.keel.base import Duration

# Long enough that most jobs never reserve workers, short enough that a gang starts on the same day.
RESERVE_AFTER = Duration.of(minutes=10)

# Free amounts of a reserved worker: negative, so that not even a task without requests fits.
UNAVAILABLE = (-(1 << 62),) * 4


def best_reservation(pool: WorkerTable, kind: RequestClass, tasks: int) -> CandidateList | None:
    """Workers to reserve for this many tasks, or None if the tasks would not fit even on empty ones."""
    best: tuple[int, str] | None = None
    chosen: CandidateList | None = None
    for row in _candidates(pool, kind):
        room = sum(count(kind.needs, amounts(pool.workers[spot].total), tasks) for spot in row.worker_indexes)
        if room < tasks:
            continue
        # Ties are broken by name, which is stable. Otherwise two places could alternate and never become free.
        merit = (-sum(_progress(pool, kind, spot) for spot in row.worker_indexes), row.value)
        if best is None or merit < best:
            best, chosen = merit, row
    return chosen


def _candidates(pool: WorkerTable, kind: RequestClass) -> Iterator[CandidateList]:
    if kind.placement.gang:
        yield from kind.rows
        return
    for spot in kind.row.worker_indexes:
        yield CandidateList(pool.workers[spot].id, [spot])


def _progress(pool: WorkerTable, kind: RequestClass, spot: int) -> int:
    """Free part of the scarcest resource for one task, in thousandths. It never falls while nothing else starts."""
    parts = [have * 1000 // need for need, have in zip(kind.needs, pool.free[spot], strict=True) if need]
    return max(0, min(parts, default=1000))
