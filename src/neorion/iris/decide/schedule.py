"""One scheduling pass: assignments, preemptions, and the pending reasons of the other jobs.

Bands are handled in order. In each, an overdue job goes first (`reservation`), then users take turns
(`fair_share`), and then jobs without room may preempt lower bands (`preemption`).
"""

from collections.abc import Sequence
from itertools import repeat

from neorion.iris.decide.fair_share import assign_in_fair_order
from neorion.iris.decide.pending_reason import FreeCapacity, why_no_room
from neorion.iris.decide.placement import PendingJob, assign_tasks
from neorion.iris.decide.plan import Assignment, Preemption, Reservation, SchedulePlan, UnmetDemand
from neorion.iris.decide.preemption import PreemptionCandidates
from neorion.iris.decide.quota import CAPPED, QuotaTracker
from neorion.iris.decide.reservation import RESERVE_AFTER, UNAVAILABLE, best_reservation
from neorion.iris.decide.worker_table import WHOLE, CandidateList, RequestClass, WorkerTable
from neorion.iris.model import ClusterView, JobId, PendingCode, PendingReason, PriorityBand, RunningView
from neorion.keel.base import Instant, Terminal

# Pending reasons that more workers would not resolve.
_NOT_FOR_WORKERS = CAPPED | {PendingCode.SETTLING}


def schedule(view: ClusterView, now: Instant) -> SchedulePlan:
    """Plans one pass. The plan does not depend on the order of the view's parts."""
    work = _SchedulingPass(view, now - RESERVE_AFTER)
    jobs = sorted(view.jobs, key=lambda job: (job.band, job.submitted.ns, job.id))
    kind = work.pool.kind
    waiting = [PendingJob(job, kind(job.resources, job.placement)) for job in jobs if job.waiting]
    for band in PriorityBand:
        work.band(band, [each for each in waiting if each.job.band is band])
    return work.plan(waiting)


class _SchedulingPass:
    """State of a running pass: the free capacity and the decisions so far."""

    def __init__(self, view: ClusterView, overdue: Instant) -> None:
        self.pool = WorkerTable(view.workers, view.running)
        self._allowances = QuotaTracker(view.caps, view.running)
        self._capped = self._allowances.any
        self._running = view.running
        self._overdue = overdue
        self._candidates: PreemptionCandidates | None = None
        self._assignments: list[Assignment] = []
        self._preemptions: list[Preemption] = []
        self._claims: list[Assignment] = []
        self._holds: list[tuple[Reservation, CandidateList]] = []
        self._reasons: dict[JobId, PendingReason] = {}
        self._promised: set[int] = set()
        # Free amounts of reserved workers while they are closed to other jobs.
        self._reserved_free: dict[int, list[int]] = {}
        self._shares, self._settling = _count_running(self.pool, view.running)

    def band(self, band: PriorityBand, jobs: Sequence[PendingJob]) -> None:
        self._serve_oldest(jobs)
        assign_in_fair_order([each for each in jobs if each.left], self._shares, self._assign)
        if band is not PriorityBand.BATCH:
            assign_in_fair_order(
                [each for each in jobs if each.left], self._shares, self._preempt_until_spent
            )

    def plan(self, waiting: Sequence[PendingJob]) -> SchedulePlan:
        unserved = [each for each in waiting if each.left]
        rooms = {each.kind: self._rooms(each.kind) for each in unserved if each.kind.across}
        # Pending reasons count free capacity, reserved or not.
        for spot, free in self._reserved_free.items():
            self.pool.free[spot] = free
        offers, explained = FreeCapacity(self.pool), dict[tuple[RequestClass, int], PendingReason]()
        reasons = self._reasons
        demand: list[UnmetDemand] = []
        for each in unserved:
            job = each.job
            reason = reasons.get(job.id)
            if reason is None:
                ask = (each.kind, len(job.waiting) if job.placement.gang else 1)
                reason = explained.get(ask)
                if reason is None:
                    reason = explained[ask] = self._explain(offers, *ask)
                reasons[job.id] = reason
            unmet = self._fillable(each) if self._capped else each.left
            if unmet and reason.code not in _NOT_FOR_WORKERS:
                lacking = UnmetDemand(job.id, job.resources, job.placement, unmet, job.submitted)
                demand.append(lacking._replace(there=rooms[each.kind]) if each.kind.across else lacking)
                if self._capped:
                    self._allowances.take(job.user, job.resources, unmet)
        overdue = self._overdue.ns
        upcoming = [each.job.submitted.ns for each in unserved if each.job.submitted.ns > overdue]
        return SchedulePlan(
            self._assignments,
            self._preemptions,
            self._claims,
            [hold for hold, _ in self._holds],
            reasons,
            demand,
            frozenset(self.pool.workers[spot].slice for spot in self._promised),
            Instant(min(upcoming)) + RESERVE_AFTER if upcoming else None,
        )

    def _rooms(self, kind: RequestClass) -> dict[str, int]:
        """Number of tasks that fit now, per value of the attribute that a gang may share."""
        free = {
            row.value: sum(self.pool.room(kind, spot, 1 << 31) for spot in row.worker_indexes)
            for row in kind.rows
        }
        return {value: room for value, room in free.items() if room}

    def _fillable(self, each: PendingJob) -> int:
        """Number of tasks to request workers for. Workers beyond the user's quota would stand idle."""
        job = each.job
        allowed = self._allowances.left(job.user, job.resources, each.left)
        return allowed if allowed == each.left or not job.placement.gang else 0

    def _serve_oldest(self, jobs: Sequence[PendingJob]) -> None:
        """Starts the first overdue job of the band, preempts for it or reserves workers: one job per band and pass."""
        part = WHOLE // max(1, len({each.job.user for each in jobs}))
        never: set[tuple[RequestClass, int]] = set()
        for each in jobs:
            job = each.job
            if job.submitted > self._overdue:
                return
            tasks = each.left if job.placement.gang else 1
            if self._shares.get(job.user, 0) > part or (each.kind, tasks) in never:
                continue
            placed = self._assign(each, 1)
            if not placed and job.band is not PriorityBand.BATCH:
                placed = self._preempt(each, 1)
            if placed:
                self._shares[job.user] = self._shares.get(job.user, 0) + placed * each.kind.cost
                return
            if job.id in self._reasons:
                continue
            workers = best_reservation(self.pool, each.kind, tasks)
            if workers is not None:
                self._reserve(job.id, workers)
                return
            never.add((each.kind, tasks))

    def _assign(self, each: PendingJob, most: int) -> int:
        kind = each.kind
        if kind.simple and not self._capped:
            # Fast path for most jobs: no gang, no rows and no quota.
            if kind.row.at == len(kind.row.worker_indexes):
                return 0
            spot, tasks = self.pool.settle(kind, kind.row, min(most, each.left))
            if tasks:
                self._record(self._assignments, each, spot, tasks)
            return tasks
        most = self._allowed(each, most)
        placed = 0
        for spot, tasks in assign_tasks(self.pool, each, most) if most else ():
            self._record(self._assignments, each, spot, tasks)
            placed += tasks
        return placed

    def _preempt_until_spent(self, each: PendingJob, most: int) -> int | None:
        return None if self._candidates is not None and self._candidates.spent else self._preempt(each, most)

    def _preempt(self, each: PendingJob, most: int) -> int:
        job, kind = each.job, each.kind
        if self._candidates is None:
            self._candidates = PreemptionCandidates(self.pool, self._running, job.band)
        tasks = each.left if job.placement.gang else 1
        if tasks >= kind.min_infeasible or not self._allowed(each, most):
            return 0
        room = self._candidates.find_victims(kind, tasks, job.band)
        if room is None:
            return 0
        for spot, placed in room.seats:
            self._record(self._claims, each, spot, placed)
        for victim in room.victims:
            self._preemptions.extend(Preemption(attempt, job.id) for attempt in victim.attempts)
        self._reasons[job.id] = PendingReason(PendingCode.PREEMPTING, best=room.stopping)
        return tasks

    def _allowed(self, each: PendingJob, most: int) -> int:
        """Number of tasks that may be assigned now: all or none of a gang, and no more than the quota allows."""
        job = each.job
        gang = each.kind.placement.gang
        if gang and job.id in self._settling:
            self._reasons[job.id] = PendingReason(PendingCode.SETTLING, best=self._settling[job.id])
            return 0
        if gang or most > each.left:
            most = each.left
        if not self._capped:
            return most
        reason = self._allowances.reason(job.user, job.resources, most if gang else 1)
        if reason is not None:
            self._reasons[job.id] = reason
            return 0
        return self._allowances.left(job.user, job.resources, most)

    def _record(self, into: list[Assignment], each: PendingJob, spot: int, tasks: int) -> None:
        job, worker = each.job, self.pool.workers[spot].id
        first = len(job.waiting) - each.left
        if tasks == 1:
            into.append(Assignment(job.id, job.waiting[first], worker))
        else:
            into.extend(map(Assignment, repeat(job.id), job.waiting[first : first + tasks], repeat(worker)))
        each.left -= tasks
        self._promised.add(spot)
        if self._capped:
            self._allowances.take(job.user, job.resources, tasks)

    def _reserve(self, job: JobId, place: CandidateList) -> None:
        for spot in place.worker_indexes:
            self._reserved_free.setdefault(spot, self.pool.free[spot])
            self.pool.free[spot] = list(UNAVAILABLE)
        self._promised.update(place.worker_indexes)
        workers = tuple(self.pool.workers[spot].id for spot in place.worker_indexes)
        self._holds.append((Reservation(job, place.value, workers), place))
        self._reasons[job] = PendingReason(PendingCode.HOLDING, subject=place.value)

    def _explain(self, offers: FreeCapacity, kind: RequestClass, tasks: int) -> PendingReason:
        reason = why_no_room(offers, kind, tasks)
        if reason is not None:
            return reason
        # The only room is reserved: the reason names the job.
        for hold, place in self._holds:
            if any(self.pool.room(kind, spot, 1) for spot in place.worker_indexes):
                return PendingReason(PendingCode.HELD, subject=hold.job)
        raise Terminal(
            "iris.unexplained",
            "A job is pending although an unreserved worker has room for it.",
            hint="Report this defect of the scheduler together with the view.",
        )


def _count_running(
    pool: WorkerTable, running: Sequence[RunningView]
) -> tuple[dict[str, int], dict[JobId, int]]:
    """Share of the cluster per user, and running attempts per gang."""
    shares: dict[str, int] = {}
    gangs: dict[JobId, int] = {}
    costs: dict[tuple[int, ...], int] = {}
    for run in running:
        if run.gang:
            gangs[run.job] = gangs.get(run.job, 0) + 1
        asks = run.resources
        key = (asks.cpu_milli, asks.memory, asks.disk, asks.gpus)
        cost = costs.get(key)
        if cost is None:
            cost = costs[key] = pool.cost(asks)
        if not run.stopping:
            shares[run.user] = shares.get(run.user, 0) + cost
    return shares, gangs
