"""Bin packing of demand into slices that do not exist yet: those on their way, and those about to be created."""

from neorion.iris.decide.worker_table import SLICE, WORKER, Amounts, amounts, count
from neorion.iris.model import Placement, Resources, WorkerShape

# Free amounts of each worker.
Part = list[list[int]]


class SliceBins:
    """Empty slices of one scale group, filled by demand. Free room only shrinks, except for new slices at the end."""

    def __init__(self, shape: WorkerShape) -> None:
        self._shape = shape
        self._parts: dict[str, list[Part]] = {SLICE: [], WORKER: []}
        # Number of leading parts without room, per needs, kind of part and number of tasks at once.
        self._starts: dict[tuple[Amounts, str, int], int] = {}

    def suits(self, asks: Resources, placement: Placement) -> bool:
        """True if such a task can run on a worker of this group, and a gang of them can share its key there."""
        shape = self._shape
        known = placement.gang in ("", SLICE, WORKER) or placement.gang in shape.attributes
        met = all(each.holds(shape.attributes) for each in placement.constraints if each.required)
        return known and met and asks.fits(shape.total)

    def add(self, slices: int) -> None:
        total = amounts(self._shape.total)
        for _ in range(slices):
            workers = [list(total) for _ in range(self._shape.per_slice)]
            self._parts[SLICE].append(workers)
            self._parts[WORKER] += [[worker] for worker in workers]

    def missing(self, asks: Resources, gang: str, tasks: int) -> int | None:
        """Additional slices for this many tasks; None if a gang is too large for one part."""
        needs, empty = amounts(asks), amounts(self._shape.total)
        one_worker = count(needs, empty, tasks)
        one_slice = min(tasks, one_worker * self._shape.per_slice)
        if gang in (SLICE, WORKER):
            return 1 if (one_worker if gang == WORKER else one_slice) >= tasks else None
        return max(0, -(-tasks // one_slice))

    def room(self, asks: Resources, most: int) -> int:
        """Number of tasks that fit, up to `most`."""
        needs = amounts(asks)
        return min(most, sum(_room(needs, part, most) for part in self._parts[SLICE]))

    def hold(self, asks: Resources, slices: int) -> int:
        """Number of such tasks that fit into this many empty slices."""
        return count(amounts(asks), amounts(self._shape.total), 1 << 31) * self._shape.per_slice * slices

    def fill(self, asks: Resources, gang: str, tasks: int) -> int:
        """Takes room for up to `tasks` and returns how many fit. A gang fits completely on one part, or not at all."""
        needs = amounts(asks)
        if gang in (SLICE, WORKER):
            return self._fill_one(needs, gang, tasks)
        key, parts, left = (needs, "", 1), self._parts[SLICE], tasks
        at = self._starts.get(key, 0)
        while at < len(parts):
            left -= _take(needs, parts[at], left)
            if not left:
                break
            at += 1
        self._starts[key] = at
        return tasks - left

    def _fill_one(self, needs: Amounts, gang: str, tasks: int) -> int:
        parts = self._parts[gang]
        for at in range(self._starts.get((needs, gang, tasks), 0), len(parts)):
            if _room(needs, parts[at], tasks) == tasks:
                return _take(needs, parts[at], tasks)
            self._starts[needs, gang, tasks] = at + 1
        return 0


def _room(needs: Amounts, part: Part, tasks: int) -> int:
    return min(tasks, sum(count(needs, worker, tasks) for worker in part))


def _take(needs: Amounts, part: Part, tasks: int) -> int:
    taken = 0
    for worker in part:
        here = count(needs, worker, tasks - taken)
        if here:
            for dimension, need in enumerate(needs):
                worker[dimension] -= need * here
            taken += here
            if taken == tasks:
                break
    return taken
