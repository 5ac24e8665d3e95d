"""Workers of one pass, as rows of plain numbers.

Free capacity only shrinks during a pass. A worker without room for a request class therefore has none for it
until the pass ends, and each row of candidates is scanned only once.
"""

from collections.abc import Iterable, Sequence
from itertools import compress

from neorion.iris.model import Constraint, Placement, Resources, RunningView, WorkerView

# Keys for gangs and spreading that every worker has: its slice, and itself.
SLICE = "slice"
WORKER = "worker"

# Shares of the cluster are in billionths, so that sums are exact.
WHOLE = 10**9

# Thousandths of cores, bytes of memory, bytes of disk, GPUs.
Amounts = Sequence[int]

# Heap of (number of tasks, row): the next task goes to the row with the fewest.
Turns = list[tuple[int, int]]


class CandidateList:
    """Candidate workers in the order of trial. Those before `at` have no room for one more task."""

    __slots__ = ("at", "value", "worker_indexes")

    def __init__(self, value: str, spots: list[int]) -> None:
        self.value = value
        self.worker_indexes = spots
        self.at = 0


class RequestClass:
    """Tasks with equal requests and placement, which share one scan over one row.

    `rows` are the same workers, grouped by the attribute that a gang shares or that tasks spread over. `starts` is
    the number of leading rows that are too small, per size of a gang. Tasks with `zero_cost` request nothing, so
    that only `turns` distribute them over workers. A gang `across` slices shares an
    attribute that more than one slice may have.
    """

    __slots__ = (
        "across",
        "cost",
        "min_infeasible",
        "needs",
        "placement",
        "resources",
        "row",
        "rows",
        "simple",
        "starts",
        "turns",
        "zero_cost",
    )

    def __init__(self, resources: Resources, placement: Placement, row: CandidateList, cost: int) -> None:
        self.resources = resources
        self.placement = placement
        self.needs = amounts(resources)
        together = bool(placement.gang or placement.spread)
        # Tasks that prefer some workers go there, however many there are.
        self.zero_cost = (
            not together and not any(self.needs) and all(c.required for c in placement.constraints)
        )
        self.simple = not (together or self.zero_cost)
        self.across = placement.gang not in ("", SLICE, WORKER)
        self.cost = cost
        self.row = row
        self.rows: list[CandidateList] = []
        self.starts: dict[int, int] = {}
        self.turns: Turns | None = None
        # Smallest number of tasks for which this pass can free no room, even with preemption.
        self.min_infeasible = 1 << 62


class WorkerTable:
    """Workers in one order, the tightest first.

    Workers without GPUs come first, then those with few, then those with few left. Tasks without GPUs avoid GPU
    workers, small tasks fill partly used workers, and empty workers stay free for large tasks.
    """

    def __init__(self, workers: Iterable[WorkerView], running: Sequence[RunningView] = ()) -> None:
        self.workers = sorted(workers, key=_tightness)
        self.running = running
        self.index = {worker.id: spot for spot, worker in enumerate(self.workers)}
        self.free = [list(amounts(worker.free)) for worker in self.workers]
        totals = [amounts(worker.total) for worker in self.workers]
        self._total = [sum(column) for column in zip(*totals, strict=True)] or [0, 0, 0, 0]
        self._kinds: dict[tuple[object, ...], RequestClass] = {}
        self._eligible: dict[tuple[tuple[Constraint, ...], str], list[int]] = {}
        self._values: dict[str, dict[str | None, int]] = {}
        self._meetings: dict[Constraint, int] = {}

    def kind(self, resources: Resources, placement: Placement) -> RequestClass:
        variant = resources.gpu_variant if resources.gpus else ""
        # A tuple of fields, because hashing the records takes longer than placing a task.
        key = (
            resources.cpu_milli,
            resources.memory,
            resources.disk,
            resources.gpus,
            variant,
            placement.constraints,
            placement.gang,
            placement.spread,
        )
        kind = self._kinds.get(key)
        if kind is None:
            spots = self.eligible(placement.constraints, variant)
            kind = self._kinds[key] = RequestClass(
                resources, placement, CandidateList("", spots), self.cost(resources)
            )
            if placement.gang:
                kind.rows = self.partition_by(spots, placement.gang)
                if all(constraint.required for constraint in placement.constraints):
                    # Small groups first, so that large ones stay free for large gangs.
                    kind.rows.sort(key=lambda row: len(row.worker_indexes))
            elif placement.spread:
                kind.rows = self.partition_by(spots, placement.spread, others=True)
            elif kind.zero_cost and spots:
                gpus = self.workers[spots[0]].total.gpus
                kind.rows = [
                    CandidateList("", [spot]) for spot in spots if self.workers[spot].total.gpus == gpus
                ]
        return kind

    def cost(self, resources: Resources) -> int:
        """Dominant resource share of one task (DRF), at least 1."""
        requests = zip(amounts(resources), self._total, strict=True)
        return max(1, *(need * WHOLE // total if total else 0 for need, total in requests))

    def settle(self, kind: RequestClass, row: CandidateList, most: int) -> tuple[int, int]:
        """Assigns up to `most` tasks to the first worker with room. Returns worker and number, or (-1, 0) without room."""
        free, spots = self.free, row.worker_indexes
        need_cpu, need_memory, need_disk, need_gpus = needs = kind.needs
        for at in range(row.at, len(spots)):
            cpu, memory, disk, gpus = there = free[spots[at]]
            if cpu >= need_cpu and memory >= need_memory and disk >= need_disk and gpus >= need_gpus:
                row.at = at
                tasks = count(needs, there, most) if most > 1 else 1
                there[0] = cpu - need_cpu * tasks
                there[1] = memory - need_memory * tasks
                there[2] = disk - need_disk * tasks
                there[3] = gpus - need_gpus * tasks
                return spots[at], tasks
        row.at = len(spots)
        return -1, 0

    def seats(self, kind: RequestClass, row: CandidateList, tasks: int) -> list[tuple[int, int]]:
        """Workers of the row with the number of tasks for each; empty unless all tasks fit."""
        found: list[tuple[int, int]] = []
        for at in range(row.at, len(row.worker_indexes)):
            spot = row.worker_indexes[at]
            room = self.room(kind, spot, tasks)
            if room:
                found.append((spot, room))
                tasks -= room
                if not tasks:
                    return found
            elif not found:
                row.at = at + 1
        return []

    def room(self, kind: RequestClass, spot: int, most: int) -> int:
        """Number of tasks that fit on one worker, up to `most`."""
        return count(kind.needs, self.free[spot], most)

    def take(self, kind: RequestClass, spot: int, tasks: int) -> None:
        free = self.free[spot]
        for dimension, need in enumerate(kind.needs):
            free[dimension] -= need * tasks

    def partition_by(self, spots: Sequence[int], key: str, *, others: bool = False) -> list[CandidateList]:
        """Groups workers by their value of one attribute. With `others`, those without it form a row too."""
        rows: dict[str, CandidateList] = {}
        for spot in spots:
            value = value_of(self.workers[spot], key)
            if value is None:
                if not others:
                    continue
                value = ""
            row = rows.get(value)
            if row is None:
                row = rows[value] = CandidateList(value, [])
            row.worker_indexes.append(spot)
        return list(rows.values())

    def eligible(self, constraints: tuple[Constraint, ...], variant: str) -> list[int]:
        """Workers that meet the required constraints, ordered by the number of preferred ones they miss."""
        key = (constraints, variant)
        spots = self._eligible.get(key)
        if spots is None:
            indexes = range(len(self.workers))
            meeting = (1 << len(indexes)) - 1
            for constraint in constraints:
                if constraint.required:
                    meeting &= self._meeting(constraint)
            spots = list(compress(indexes, map("1".__eq__, self._bits(meeting))))
            if variant:
                spots = [spot for spot in spots if self.workers[spot].total.gpu_variant == variant]
            preferred = [self._bits(self._meeting(each)) for each in constraints if not each.required]
            if preferred:
                missed = [met.count("0") for met in zip(*preferred, strict=True)]
                spots.sort(key=missed.__getitem__)
            self._eligible[key] = spots
        return spots

    def _meeting(self, constraint: Constraint) -> int:
        """Bit mask of the workers that meet a constraint. It is evaluated once per value, not per worker."""
        meeting = self._meetings.get(constraint)
        if meeting is None:
            meeting = 0
            for value, workers in self._workers_by_value(constraint.key).items():
                if constraint.holds({} if value is None else {constraint.key: value}):
                    meeting |= workers
            self._meetings[constraint] = meeting
        return meeting

    def _workers_by_value(self, key: str) -> dict[str | None, int]:
        """Bit mask of the workers per value of an attribute; None is the key for workers without it."""
        values = self._values.get(key)
        if values is None:
            values = self._values[key] = {}
            for spot, worker in enumerate(self.workers):
                value = worker.attributes.get(key)
                values[value] = values.get(value, 0) | 1 << spot
        return values

    def _bits(self, mask: int) -> str:
        """Bit mask as text, one character per worker in their order."""
        return f"{mask:0{len(self.workers)}b}"[::-1]


def amounts(resources: Resources) -> tuple[int, int, int, int]:
    return (resources.cpu_milli, resources.memory, resources.disk, resources.gpus)


def count(needs: Amounts, there: Amounts, most: int) -> int:
    """Number of times the needs fit into the free amounts, up to `most`."""
    for need, have in zip(needs, there, strict=True):
        if have < need:
            return 0
        if need and have < need * most:
            most = have // need
    return most


def value_of(worker: WorkerView, key: str) -> str | None:
    if key == SLICE:
        return worker.slice
    if key == WORKER:
        return worker.id
    return worker.attributes.get(key)


def _tightness(worker: WorkerView) -> tuple[int, int, int, int, str]:
    free = worker.free
    return (worker.total.gpus, free.gpus, free.cpu_milli, free.memory, worker.id)
