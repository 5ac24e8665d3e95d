"""Cluster service, for administrators."""

from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version

from msgspec.structs import replace

from neorion.iris.controllers.audit_log import AuditLog
from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.dispatcher import Dispatcher
from neorion.iris.controllers.worker_tokens import WorkerTokens
from neorion.iris.model import SliceState, WorkerId, wire
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.gen.iris_connect import ClusterService
from neorion.iris.model.record import AuditEntry, Worker
from neorion.iris.serve.authorization import check_admin
from neorion.iris.state import audit_entries_before
from neorion.keel.base import Conflict, Instant, NotFound, did_you_mean
from neorion.keel.rpc import caller
from neorion.keel.rpc.paging import page_size

# Rows of one page, and of one query of the store.
PAGE_MAX = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEndpoint(ClusterService):
    """Endpoint of ClusterService."""

    context: ControllerContext
    audit_log: AuditLog
    dispatcher: Dispatcher
    worker_tokens: WorkerTokens
    started: Instant

    async def status(self, request: pb.StatusRequest, ctx: object) -> pb.StatusResponse:
        cluster = self.context.cluster
        tasks = Counter[str]()
        for counts in cluster.counts.values():
            tasks.update({state.value: count for state, count in counts.items() if count})
        return pb.StatusResponse(
            version=version("neorion"),
            started_ms=wire.ms(self.started),
            jobs=dict(Counter(job.state.value for job in cluster.jobs.values())),
            tasks=dict(tasks),
            workers=dict(Counter(worker.state.value for worker in cluster.workers.values())),
            slices=dict(Counter(slice_.state.value for slice_ in cluster.slices.values())),
        )

    async def workers(self, request: pb.WorkersRequest, ctx: object) -> pb.WorkersResponse:
        return pb.WorkersResponse(
            workers=[
                pb.Worker(
                    id=worker.id,
                    slice=worker.slice,
                    host=worker.host,
                    state=worker.state,
                    draining=worker.draining,
                    total=wire.resources_message(worker.total),
                    free=wire.resources_message(self.context.cluster.free(worker.id)),
                    attributes=worker.attributes,
                    tasks=len(self.context.cluster.attempts_on_worker[worker.id]),
                    joined_ms=wire.ms(worker.joined),
                )
                for worker in self.context.cluster.workers.values()
            ]
        )

    async def slices(self, request: pb.SlicesRequest, ctx: object) -> pb.SlicesResponse:
        homes: dict[str, list[str]] = {}
        for worker in self.context.cluster.workers.values():
            homes.setdefault(worker.slice, []).append(worker.id)
        return pb.SlicesResponse(
            slices=[
                pb.Slice(
                    id=slice_.id,
                    group=slice_.group,
                    state=slice_.state,
                    since_ms=wire.ms(slice_.since),
                    message=slice_.message,
                    workers=homes.get(slice_.id, []),
                )
                for slice_ in self.context.cluster.slices.values()
            ]
        )

    async def drain(self, request: pb.DrainRequest, ctx: object) -> pb.DrainResponse:
        what = "Undrain" if request.undo else "Drain"
        async with self.audit_log.entry(caller().name, what, request.worker) as entry:
            check_admin()
            worker = self._worker(request.worker)
            if request.undo:
                self._check_stays(worker)
            self.context.cluster.put_worker(replace(worker, draining=not request.undo))
            entry.done()
            self.context.wake()
            await self.context.journal.wait_durable()
        return pb.DrainResponse()

    async def revoke(self, request: pb.RevokeRequest, ctx: object) -> pb.RevokeResponse:
        """Revokes a worker. Its tasks are retried only after its lease, because they may still run until then."""
        async with self.audit_log.entry(caller().name, "Revoke", request.worker) as entry:
            check_admin()
            worker = self._worker(request.worker)
            self.context.cluster.put_worker(replace(worker, revoked=True, draining=True))
            if (slice_ := self.context.cluster.slices.get(worker.slice)) is not None:
                self.context.cluster.put_slice(replace(slice_, revoked=True))
            else:
                # It could join under another name with its join token.
                self.worker_tokens.rotate_manual_token()
            entry.done()
            await self.context.journal.wait_durable()
            self.dispatcher.close_stream(worker.id)
        return pb.RevokeResponse()

    async def audit(self, request: pb.AuditRequest, ctx: object) -> pb.AuditResponse:
        check_admin()
        limit = page_size(request.limit, PAGE_MAX)
        number = request.before or self.audit_log.last + 1
        entries: list[pb.AuditEntry] = []
        while number > 1 and len(entries) < limit:
            page = await audit_entries_before(self.context.store, number, PAGE_MAX)
            if not page:
                break
            number = page[-1].number
            entries += [_entry(entry) for entry in page if request.who in ("", entry.who)]
        return pb.AuditResponse(entries=entries[:limit])

    def _check_stays(self, worker: Worker) -> None:
        """Refuses to undrain a worker that is being removed, because its new work would be lost."""
        slice_ = self.context.cluster.slices.get(worker.slice)
        if worker.revoked or (
            slice_ is not None and slice_.state in (SliceState.FAILED, SliceState.DELETING)
        ):
            why = "was revoked" if worker.revoked else "is removed with its slice"
            raise Conflict(
                "iris.worker_goes",
                f"{worker.id} {why} and accepts no more work.",
                hint="See the others with: iris slice list, iris worker list.",
            )

    def _worker(self, name: str) -> Worker:
        worker = self.context.cluster.workers.get(WorkerId(name))
        if worker is None:
            raise NotFound(
                "iris.no_worker",
                f"The worker {name[:80]} does not exist.",
                hint=did_you_mean(name, self.context.cluster.workers)
                or "List the workers with: iris worker list.",
            )
        return worker


def _entry(entry: AuditEntry) -> pb.AuditEntry:
    return pb.AuditEntry(
        number=entry.number,
        when_ms=wire.ms(entry.when),
        who=entry.who,
        what=entry.what,
        target=entry.target,
        outcome=entry.outcome,
    )
