"""Worker registration, reports and lost contact."""

from msgspec.structs import replace

from neorion.iris.controllers.blob_store import BlobStore
from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.lifecycle import LifecycleManager
from neorion.iris.model import (
    WORKER,
    AttemptId,
    AttemptState,
    ExitKind,
    SliceId,
    SliceState,
    WorkerId,
    WorkerState,
    wire,
)
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.lease import WorkerLeaseTiming
from neorion.iris.model.record import Attempt, Outcome, Worker
from neorion.iris.model.usage import Usage
from neorion.iris.ports import Phase
from neorion.keel.base import Denied, Invalid, NotFound
from neorion.keel.telemetry import logger

log = logger(__name__)


class WorkerReports:
    """Keeper of the workers' records, which turns reports into transitions."""

    def __init__(
        self,
        context: ControllerContext,
        lifecycle: LifecycleManager,
        blobs: BlobStore,
        lease: WorkerLeaseTiming,
    ) -> None:
        self._context = context
        self._cluster = context.cluster
        self._lifecycle = lifecycle
        self._blobs = blobs
        self.lease = lease
        # Monotonic times. After a restart every known worker counts as just seen.
        now = context.clock.monotonic()
        self._last_heard: dict[WorkerId, float] = dict.fromkeys(context.cluster.workers, now)
        # Latest usage for display. It is not stored, because the next report follows within seconds.
        self._usage: dict[WorkerId, dict[AttemptId, Usage]] = {}

    def join(self, request: pb.JoinRequest, worker_id: WorkerId) -> Worker:
        """Registers a worker: the existing record if it is known and not lost, otherwise a new one."""
        known = self._cluster.workers.get(worker_id)
        self._context.wake()
        if known is not None and known.state is not WorkerState.LOST:
            self._record_contact(known)
            return self._renew(self._cluster.workers[known.id], request)
        worker = Worker(
            id=self._context.ids.new(WorkerId),
            slice=SliceId(request.slice),
            host=request.host,
            total=wire.resources(request.total),
            attributes={**request.attributes, "slice": request.slice},
            joined=self._context.clock.now(),
        )
        self._cluster.put_worker(worker)
        self._last_heard[worker.id] = self._context.clock.monotonic()
        log.info("worker joined", worker=worker.id, slice=worker.slice)
        return worker

    def _renew(self, worker: Worker, request: pb.JoinRequest) -> Worker:
        """Updates the record of a worker that returned, possibly with another size."""
        now = replace(
            worker,
            slice=SliceId(request.slice),
            host=request.host,
            total=wire.resources(request.total),
            attributes={**request.attributes, "slice": request.slice},
        )
        if now != worker:
            self._cluster.put_worker(now)
        return now

    async def take(self, request: pb.ReportRequest) -> list[str]:
        """Applies a report. Returns its attempts that are unknown to the controller."""
        worker = self._cluster.workers.get(WorkerId(request.worker))
        if worker is None or worker.state is WorkerState.LOST:
            raise NotFound(
                "iris.no_worker", f"The worker {request.worker[:80]} is not known.", hint="Join again."
            )
        _check(request)
        self._record_contact(worker)
        if request.look is not None:
            self._usage[worker.id] = {
                AttemptId(attempt): wire.usage(seen) for attempt, seen in request.look.usage.items()
            }
        unknown: list[str] = []
        for seen in request.seen:
            ending = await self._ending(seen) if self._known(worker, seen) else Outcome()
            # Again, because the state may have changed while a large result was written.
            attempt = self._known(worker, seen)
            if attempt is None:
                unknown.append(seen.attempt)
            elif seen.phase == Phase.WAITING:
                self._context.reasons.record_disk_wait(attempt)
            elif seen.phase == Phase.ENDED:
                used = replace(attempt, usage=wire.usage(seen.usage))
                self._lifecycle.end(used, ExitKind(seen.kind), ending)
            else:
                state = AttemptState.BUILDING if seen.phase == Phase.BUILDING else AttemptState.RUNNING
                self._lifecycle.update_attempt(attempt, state)
        return unknown

    def usage(self, attempt: Attempt) -> Usage:
        """Usage in the latest report, or in total if the attempt has ended."""
        if attempt.state.ended:
            return attempt.usage
        return self._usage.get(attempt.worker, {}).get(attempt.id, attempt.usage)

    async def tick(self) -> None:
        """Marks workers as silent or lost that have not reported in time."""
        now = self._context.clock.monotonic()
        for worker in list(self._cluster.workers.values()):
            quiet = now - self._last_heard[worker.id]
            if quiet >= self.lease.lost_after.seconds and worker.state is WorkerState.SILENT:
                self.mark_worker_lost(worker, f"silent for {quiet:.1f} s")
            elif quiet >= self.lease.silent_after.seconds and worker.state is WorkerState.READY:
                self._move(worker, WorkerState.SILENT)

    def mark_worker_lost(self, worker: Worker, why: str) -> None:
        """Removes a worker whose tasks have certainly ended. A removal on request does not count as a loss."""
        if requested := self._removal_reason(worker):
            self.remove_worker(worker, requested)
            return
        log.warning("worker lost", worker=worker.id, slice=worker.slice, why=why)
        self._drop(worker, "lost")

    def remove_worker(self, worker: Worker, why: str) -> None:
        log.info("worker removed", worker=worker.id, slice=worker.slice, why=why)
        self._drop(worker, why)

    def _drop(self, worker: Worker, what: str) -> None:
        self._move(worker, WorkerState.LOST)
        self._lifecycle.fail_worker(worker.id, f"its worker was {what}")
        self._cluster.drop_worker(worker.id)
        del self._last_heard[worker.id]
        self._usage.pop(worker.id, None)
        self._context.wake()

    def _removal_reason(self, worker: Worker) -> str:
        """Reason of a requested removal; empty for a lost worker."""
        slice_ = self._cluster.slices.get(worker.slice)
        if slice_ is not None and slice_.state is SliceState.DELETING and not slice_.message:
            return "given back"
        return "revoked" if worker.revoked else ""

    def _known(self, worker: Worker, seen: pb.Seen) -> Attempt | None:
        attempt = self._cluster.attempts.get(AttemptId(seen.attempt))
        return attempt if attempt is not None and attempt.worker == worker.id else None

    def _record_contact(self, worker: Worker) -> None:
        self._last_heard[worker.id] = self._context.clock.monotonic()
        if worker.state is WorkerState.SILENT:
            self._move(worker, WorkerState.READY)
            self._context.wake()

    def _move(self, worker: Worker, state: WorkerState) -> None:
        WORKER.check(worker.id, worker.state, state)
        self._cluster.put_worker(replace(worker, state=state))

    async def _ending(self, seen: pb.Seen) -> Outcome:
        if seen.result is None:
            return Outcome(code=seen.code, message=seen.message)
        digest = wire.digest(seen.result.digest)
        if seen.result.body:
            try:
                await self._blobs.put(digest, seen.result.body)
            except Denied as error:
                # The storage denies access: the attempt ends without its value, so that other reports still arrive.
                seen.kind, seen.code = ExitKind.EXIT, 1
                return Outcome(code=seen.code, message=error.sentence)
        return Outcome(code=seen.code, message=seen.message, result=digest, result_bytes=seen.result_bytes)


def _check(request: pb.ReportRequest) -> None:
    """Refuses an invalid report completely."""
    phases, kinds = [phase.value for phase in Phase], [kind.value for kind in ExitKind]
    for seen in request.seen:
        if seen.phase not in phases or (seen.phase == Phase.ENDED and seen.kind not in kinds):
            raise Invalid(
                "iris.report",
                f"The report speaks of {seen.phase[:40]!r} and {seen.kind[:40]!r}.",
                hint="Bring worker and controller to the same version.",
            )
