"""Placement of the tasks of one job on free workers."""

from collections import Counter
from collections.abc import Iterable
from heapq import heapify, heappop, heapreplace

from neorion.iris.decide.worker_table import CandidateList, RequestClass, Turns, WorkerTable, value_of
from neorion.iris.model import JobView

# Pairs of a worker and the number of tasks assigned to it.
Placements = list[tuple[int, int]]


class PendingJob:
    """A job during one scheduling pass. `left` is the number of its waiting tasks that are not assigned yet."""

    __slots__ = ("job", "kind", "left", "turns")

    def __init__(self, job: JobView, kind: RequestClass) -> None:
        self.job = job
        self.kind = kind
        self.left = len(job.waiting)
        self.turns: Turns | None = None


def assign_tasks(pool: WorkerTable, waiting: PendingJob, most: int) -> Placements:
    """Assigns up to `most` tasks, to one worker unless they spread; for a gang, all of its tasks or none."""
    kind = waiting.kind
    if kind.placement.gang:
        return _take_for_gang(pool, kind, waiting.left)
    if kind.placement.spread:
        if waiting.turns is None:
            beside = [pool.index[worker] for worker in waiting.job.beside if worker in pool.index]
            waiting.turns = _turns(pool, kind.rows, beside, kind.placement.spread)
        return _take_spread(pool, kind, kind.rows, waiting.turns, most)
    if kind.zero_cost:
        if kind.turns is None:
            kind.turns = _zero_cost_turns(pool, kind)
        seats = _take_spread(pool, kind, kind.rows, kind.turns, most)
        if seats:
            return seats
    seat = pool.settle(kind, kind.row, most)
    return [seat] if seat[1] else []


def _take_for_gang(pool: WorkerTable, kind: RequestClass, tasks: int) -> Placements:
    for at in range(kind.starts.get(tasks, 0), len(kind.rows)):
        seats = pool.seats(kind, kind.rows[at], tasks)
        if not seats:
            kind.starts[tasks] = at + 1
            continue
        spread = kind.placement.spread
        if spread:
            rows = pool.partition_by(kind.rows[at].worker_indexes, spread, others=True)
            return _take_spread(pool, kind, rows, _turns(pool, rows, (), spread), tasks)
        for spot, placed in seats:
            pool.take(kind, spot, placed)
        return seats
    return []


def _take_spread(
    pool: WorkerTable, kind: RequestClass, rows: list[CandidateList], turns: Turns, most: int
) -> Placements:
    seats: Placements = []
    while turns and len(seats) < most:
        has, at = turns[0]
        seat = pool.settle(kind, rows[at], 1)
        if seat[1]:
            seats.append(seat)
            heapreplace(turns, (has + 1, at))
        else:
            heappop(turns)
    return seats


def _turns(pool: WorkerTable, rows: list[CandidateList], beside: Iterable[int], key: str) -> Turns:
    has: dict[str, int] = {}
    for spot in beside:
        value = value_of(pool.workers[spot], key) or ""
        has[value] = has.get(value, 0) + 1
    # A row that was full for another job of this kind is full for this one.
    if not has:
        return [(0, at) for at, row in enumerate(rows) if row.at < len(row.worker_indexes)]
    turns = [(has.get(row.value, 0), at) for at, row in enumerate(rows) if row.at < len(row.worker_indexes)]
    heapify(turns)
    return turns


def _zero_cost_turns(pool: WorkerTable, kind: RequestClass) -> Turns:
    """Turns by the number of tasks on each worker, because these tasks use no measurable resource."""
    has = Counter(run.worker for run in pool.running)
    turns = [(has[pool.workers[row.worker_indexes[0]].id], at) for at, row in enumerate(kind.rows)]
    heapify(turns)
    return turns
