"""The workers of one pass, as rows of plain numbers.

What is free only ever shrinks during a pass. So a worker that had no room for some kind of task has none for that kind
until the pass ends, and each row of candidates is walked once, however many tasks ask.
"""

from collections.abc import Iterable, Sequence
from itertools import compress

from neorion.iris.model import Constraint, Placement, Resources, RunningView, WorkerView

# Keys for gangs and spreading that every worker has: the slice it belongs to, and itself.
SLICE = "slice"
WORKER = "worker"

# Shares of the cluster are counted in billionths, so that they add up as whole numbers.
WHOLE = 10**9

# Cores in thousandths, bytes of memory, bytes of disk, GPUs.
Amounts = Sequence[int]

# How many tasks each row has already, and which row it is, as a heap: the next task goes to the row with the fewest.
Turns = list[tuple[int, int]]


class CandidateList:
    """Candidates in the order in which they are tried; those before `at` have no room left for one task more."""

    __slots__ = ("at", "value", "worker_indexes")

    def __init__(self, value: str, spots: list[int]) -> None:
        self.value = value
        self.worker_indexes = spots
        self.at = 0


class RequestClass:
    """Tasks that ask for the same, placed by one walk over one row.

    `rows` are the same workers, divided by the attribute that a gang shares or that spread tasks differ in. `starts` says
    per size of gang how many of these rows were found too small for it. Tasks that are `weightless` ask for nothing, so that
    nothing but taking turns, counted in `turns`, would keep all of them from one worker. A gang `across` slices shares an
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
        # Who prefers some workers means them, however many tasks they have.
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
        # The fewest tasks at once for which no room can be made in this pass, whoever is pushed aside.
        self.min_infeasible = 1 << 62


class WorkerTable:
    """Workers by their place in one order, the tightest first.

    Workers without GPUs come first, then those with few, then those with few left: tasks without GPUs leave GPU workers
    alone, small tasks fill what is begun, and whole workers stay whole for large ones.
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
        # Spelled out, because hashing the records themselves would take longer than placing a task.
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
                    # Small groups first, so that large ones stay whole for large gangs.
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
        """The largest part of the cluster that one such task takes of anything; never nothing, so that tasks count."""
        wants = zip(amounts(resources), self._total, strict=True)
        return max(1, *(want * WHOLE // total if total else 0 for want, total in wants))

    def settle(self, kind: RequestClass, row: CandidateList, most: int) -> tuple[int, int]:
        """Puts up to `most` tasks on the first worker of the row that has room: which one, and how many. None fit: (-1, 0)."""
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
        """Workers of the row and how many of the tasks each takes; nothing unless all of them find room."""
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
        """How many tasks fit on one worker, up to `most`."""
        return count(kind.needs, self.free[spot], most)

    def take(self, kind: RequestClass, spot: int, tasks: int) -> None:
        free = self.free[spot]
        for dimension, need in enumerate(kind.needs):
            free[dimension] -= need * tasks

    def partition_by(self, spots: Sequence[int], key: str, *, others: bool = False) -> list[CandidateList]:
        """The same workers by their value of one attribute; those without it form a row too if `others` count."""
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
        """Who meets the required constraints, ordered by how many preferred ones they miss."""
        key = (constraints, variant)
        spots = self._eligible.get(key)
        if spots is None:
            everybody = range(len(self.workers))
            meeting = (1 << len(everybody)) - 1
            for constraint in constraints:
                if constraint.required:
                    meeting &= self._meeting(constraint)
            spots = list(compress(everybody, map("1".__eq__, self._bits(meeting))))
            if variant:
                spots = [spot for spot in spots if self.workers[spot].total.gpu_variant == variant]
            wishes = [self._bits(self._meeting(each)) for each in constraints if not each.required]
            if wishes:
                missed = [met.count("0") for met in zip(*wishes, strict=True)]
                spots.sort(key=missed.__getitem__)
            self._eligible[key] = spots
        return spots

    def _meeting(self, constraint: Constraint) -> int:
        """The workers that meet a constraint, one bit each: it is asked once per value, not once per worker."""
        meeting = self._meetings.get(constraint)
        if meeting is None:
            meeting = 0
            for value, workers in self._having(constraint.key).items():
                if constraint.holds({} if value is None else {constraint.key: value}):
                    meeting |= workers
            self._meetings[constraint] = meeting
        return meeting

    def _having(self, key: str) -> dict[str | None, int]:
        """The workers that have each value of an attribute, and under None those without it."""
        values = self._values.get(key)
        if values is None:
            values = self._values[key] = {}
            for spot, worker in enumerate(self.workers):
                value = worker.attributes.get(key)
                values[value] = values.get(value, 0) | 1 << spot
        return values

    def _bits(self, mask: int) -> str:
        """One character per worker, in their order."""
        return f"{mask:0{len(self.workers)}b}"[::-1]


def amounts(resources: Resources) -> tuple[int, int, int, int]:
    return (resources.cpu_milli, resources.memory, resources.disk, resources.gpus)


def count(needs: Amounts, there: Amounts, most: int) -> int:
    """How many times the needs fit into what there is, up to `most`."""
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
