"""Preemption: attempts to stop so that a job of a higher band can start.

A victim is stopped only if the preempting job then fits completely. Victims of the lowest band go first, the
youngest first, and a gang is stopped completely. Room that is being freed already counts as free.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import add, attrgetter, gt, le

from neorion.iris.decide.worker_table import Amounts, RequestClass, WorkerTable, amounts, count
from neorion.iris.model import JobId, PriorityBand, RunningView, WorkerId

# Number of candidate places to compare, so that the search stays short in a large cluster.
CANDIDATES_MAX = 8
# Preemptions per pass, which bounds its duration and the disruption. The next pass continues.
PREEMPTIONS_MAX = 256

_NOTHING: Amounts = (0, 0, 0, 0)
# Batch work is preempted first, and interactive work only if that is not enough.
_FLOORS = (PriorityBand.BATCH, PriorityBand.INTERACTIVE)


class Victim:
    """Attempts that are stopped together: one, or all of a gang. `rank` orders victims, the first to be stopped first."""

    __slots__ = ("attempts", "band", "parts", "rank")

    def __init__(self, runs: Sequence[RunningView], spots: Mapping[WorkerId, int]) -> None:
        self.band = runs[0].band
        self.attempts = sorted(run.attempt for run in runs)
        self.rank = (-self.band, -max(run.started.ns for run in runs), self.attempts[0])
        self.parts: dict[int, list[int]] = {}
        for run in runs:
            spot = spots.get(run.worker)
            if spot is not None:
                _sum_into(self.parts, spot, amounts(run.resources))


class PreemptionPlan:
    """Room for a job, and the victims stopped for it."""

    __slots__ = ("seats", "stopping", "victims")

    def __init__(self, seats: list[tuple[int, int]], victims: list[Victim], stopping: int) -> None:
        self.seats = seats
        self.victims = victims
        self.stopping = stopping


class PreemptionCandidates:
    """Running attempts as room that preemption could free, or that stopping attempts free already."""

    def __init__(self, pool: WorkerTable, running: Iterable[RunningView], band: PriorityBand) -> None:
        """`band` is the highest preempting band. Attempts that are not below it are skipped."""
        self._pool = pool
        self._freeing: dict[int, list[int]] = {}
        self._stopping: dict[int, int] = {}
        # Running attempts per worker. Victims are built on demand, because most workers are never examined.
        self._runs: dict[int, list[RunningView]] = {}
        self._on: dict[int, list[Victim]] = {}
        # Per lowest band that may be stopped: the room that stopping all of it would free, per worker.
        self._potential: dict[PriorityBand, dict[int, list[int]]] = {
            floor: {} for floor in _FLOORS if floor > band
        }
        self._gangs = self._count(running, band)
        # Upper bound per resource of the room on one worker; a larger request cannot succeed.
        self._most = {floor: self._tops(sums) for floor, sums in self._potential.items()}
        self._starts: dict[tuple[RequestClass, PriorityBand], int] = {}
        self._preemptions = 0

    @property
    def spent(self) -> bool:
        """True when the pass has reached its limit of preemptions."""
        return self._preemptions >= PREEMPTIONS_MAX

    def find_victims(self, kind: RequestClass, tasks: int, band: PriorityBand) -> PreemptionPlan | None:
        """Takes room and returns the victims, which are none if enough is being freed. None changes nothing."""
        trial = self._cheapest(self._freed(kind), kind, tasks, None)
        for floor in self._potential:
            if trial is None and floor > band:
                trial = self._cheapest(self._preemptible(kind, floor), kind, tasks, floor)
        if trial is None:
            kind.min_infeasible = tasks
            return None
        self._preemptions += 1
        for victim in trial.victims:
            self._stop(victim)
        seats = trial.seats()
        for spot, placed in seats:
            self._claim(kind, spot, placed)
        return PreemptionPlan(seats, trial.victims, sum(self._stopping.get(spot, 0) for spot, _ in seats))

    def _cheapest(
        self, places: Iterable[Sequence[int]], kind: RequestClass, tasks: int, floor: PriorityBand | None
    ) -> "PreemptionTrial | None":
        best: PreemptionTrial | None = None
        seen = 0
        for spots in places:
            trial = PreemptionTrial(kind, tasks, {spot: self._available(spot) for spot in spots})
            if not trial.choose(self._candidates(spots, floor)):
                continue
            if best is None or trial.price < best.price:
                best = trial
            seen += 1
            # One victim is the minimum here, so a price of 1 or less cannot be improved.
            if best.price <= 1 or seen == CANDIDATES_MAX:
                break
        return best

    def _freed(self, kind: RequestClass) -> Iterator[Sequence[int]]:
        """Yields worker sets that will have room without another preemption."""
        if kind.placement.gang:
            for row in kind.rows:
                if any(spot in self._freeing for spot in row.worker_indexes):
                    yield row.worker_indexes
            return
        free, needs = self._pool.free, kind.needs
        fitting = {
            spot
            for spot, more in self._freeing.items()
            # Cores are compared first because they are usually the scarce resource.
            if free[spot][0] + more[0] >= needs[0] and all(map(le, needs, self._available(spot)))
        }
        for spot in kind.row.worker_indexes if fitting else ():
            if spot in fitting:
                yield (spot,)

    def _preemptible(self, kind: RequestClass, floor: PriorityBand) -> Iterator[Sequence[int]]:
        """Yields worker sets where stopping all attempts down to `floor` would make room for at least one task."""
        potential, needs = self._potential[floor], kind.needs
        if kind.placement.gang:
            yield from (
                row.worker_indexes for row in kind.rows if not potential.keys().isdisjoint(row.worker_indexes)
            )
            return
        if any(map(gt, needs, self._most[floor])):
            return
        spots, fruitful = kind.row.worker_indexes, False
        for at in range(self._starts.get((kind, floor), 0), len(spots)):
            spot = spots[at]
            more = potential.get(spot)
            if more is not None and all(map(le, needs, map(add, self._available(spot), more))):
                fruitful = True
                yield (spot,)
            elif not fruitful:
                # A preemption moves room from "could be freed" to "being freed", so the sum hardly ever grows.
                self._starts[kind, floor] = at + 1

    def _candidates(self, spots: Sequence[int], floor: PriorityBand | None) -> Sequence[Victim]:
        if floor is None:
            return ()
        if len(spots) == 1:
            return [victim for victim in self._victims(spots[0]) if victim.band >= floor]
        found = {
            victim.rank: victim for spot in spots for victim in self._victims(spot) if victim.band >= floor
        }
        return [found[rank] for rank in sorted(found)]

    def _victims(self, spot: int) -> list[Victim]:
        """Victims on a worker, the first to be stopped first."""
        found = self._on.get(spot)
        if found is None:
            there = self._runs.get(spot, ())
            found = [Victim((run,), self._pool.index) for run in there if not run.gang]
            found += dict.fromkeys(self._gangs[run.job] for run in there if run.gang)
            found.sort(key=attrgetter("rank"))
            self._on[spot] = found
        return found

    def _available(self, spot: int) -> list[int]:
        freeing = self._freeing.get(spot, _NOTHING)
        return list(map(add, self._pool.free[spot], freeing))

    def _stop(self, victim: Victim) -> None:
        for spot, part in victim.parts.items():
            self._victims(spot).remove(victim)
            _sum_into(self._freeing, spot, part)
            self._stopping[spot] = self._stopping.get(spot, 0) + 1
            for floor, potential in self._potential.items():
                if victim.band >= floor:
                    _grow(potential[spot], [-amount for amount in part])

    def _claim(self, kind: RequestClass, spot: int, tasks: int) -> None:
        """Takes room from what is being freed first, so that less of the room that is free now is used."""
        free, freeing = self._pool.free[spot], self._freeing.get(spot, [0, 0, 0, 0])
        for dimension, need in enumerate(kind.needs):
            later = min(need * tasks, freeing[dimension])
            freeing[dimension] -= later
            free[dimension] -= need * tasks - later

    def _tops(self, sums: dict[int, list[int]]) -> Amounts:
        tops = [-1, -1, -1, -1]
        for spot, more in sums.items():
            tops = list(map(max, tops, map(add, self._available(spot), more)))
        return tops

    def _count(self, running: Iterable[RunningView], band: PriorityBand) -> dict[JobId, Victim]:
        """Groups running attempts by worker with their sums. Returns the gangs, which are stopped completely."""
        index, runs = self._pool.index, self._runs
        gangs: dict[JobId, list[RunningView]] = {}
        for run in running:
            if not run.stopping and run.band <= band:
                continue
            if run.gang and not run.stopping:
                gangs.setdefault(run.job, []).append(run)
            spot = index.get(run.worker)
            if spot is None:
                continue
            if run.stopping:
                _sum_into(self._freeing, spot, amounts(run.resources))
                self._stopping[spot] = self._stopping.get(spot, 0) + 1
            elif spot in runs:
                runs[spot].append(run)
            else:
                runs[spot] = [run]
        for floor, sums in self._potential.items():
            for spot, there in runs.items():
                parts = [amounts(run.resources) for run in there if run.band >= floor]
                if parts:
                    sums[spot] = list(map(sum, zip(*parts, strict=True)))
        return {job: Victim(runs, index) for job, runs in gangs.items()}


class PreemptionTrial:
    """Trial of a set of victims: the number of tasks that would then fit on these workers."""

    def __init__(self, kind: RequestClass, tasks: int, there: dict[int, list[int]]) -> None:
        self._kind = kind
        self._tasks = tasks
        self._available = there
        self._rooms = {spot: count(kind.needs, have, tasks) for spot, have in there.items()}
        self._room = sum(self._rooms.values())
        self.victims: list[Victim] = []

    @property
    def price(self) -> int:
        return sum(len(victim.attempts) for victim in self.victims)

    def choose(self, candidates: Iterable[Victim]) -> bool:
        """Adds victims until there is room, then drops those that are not needed, the most expensive first."""
        chosen: list[Victim] = []
        for victim in candidates:
            if self._room >= self._tasks:
                break
            self._shift(victim, 1)
            chosen.append(victim)
        if self._room < self._tasks:
            return False
        for victim in reversed(chosen):
            self._shift(victim, -1)
            if self._room < self._tasks:
                self._shift(victim, 1)
                self.victims.append(victim)
        return True

    def seats(self) -> list[tuple[int, int]]:
        left, seats = self._tasks, list[tuple[int, int]]()
        for spot, room in self._rooms.items():
            placed = min(room, left)
            if placed:
                seats.append((spot, placed))
                left -= placed
        return seats

    def _shift(self, victim: Victim, sign: int) -> None:
        for spot, part in victim.parts.items():
            have = self._available.get(spot)
            if have is not None:
                _grow(have, part if sign > 0 else [-amount for amount in part])
                room = count(self._kind.needs, have, self._tasks)
                self._room += room - self._rooms[spot]
                self._rooms[spot] = room


def _sum_into(sums: dict[int, list[int]], spot: int, part: Amounts) -> None:
    row = sums.get(spot)
    if row is None:
        sums[spot] = list(part)
    else:
        _grow(row, part)


def _grow(row: list[int], part: Amounts) -> None:
    cpu, memory, disk, gpus = part
    row[0] += cpu
    row[1] += memory
    row[2] += disk
    row[3] += gpus
