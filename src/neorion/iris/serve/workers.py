"""Worker service: registration, orders, reports and logs."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from neorion.iris.controllers.audit_log import AuditLog
from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.dispatcher import Dispatcher
from neorion.iris.controllers.log_store import LogStore
from neorion.iris.controllers.worker_reports import WorkerReports
from neorion.iris.controllers.worker_tokens import WorkerTokens
from neorion.iris.model import AttemptId, AttemptState, WorkerId
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.gen.iris_connect import WorkerService
from neorion.iris.serve.authorization import check_is_worker, joining_worker_id
from neorion.keel.base import Invalid, NotFound
from neorion.keel.rpc import caller
from neorion.keel.telemetry import logger

log = logger(__name__)

# A worker sends one chunk; each is a write to a file.
CHUNKS_MAX = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEndpoint(WorkerService):
    """Endpoint of WorkerService."""

    context: ControllerContext
    audit_log: AuditLog
    reports: WorkerReports
    dispatcher: Dispatcher
    log_store: LogStore
    worker_tokens: WorkerTokens

    async def join(self, request: pb.JoinRequest, ctx: object) -> pb.JoinResponse:
        async with self.audit_log.entry(caller().name, "Join", request.host) as entry:
            known = joining_worker_id(self.context.cluster, request)
            worker = self.reports.join(request, known)
            if worker.id == known:
                # The worker was registered before, so nothing has changed.
                entry.drop()
            entry.done()
        begun = [
            view.attempt
            for view in self.context.cluster.attempts_on_worker[worker.id].values()
            if self.context.cluster.attempts[view.attempt].state
            in (AttemptState.BUILDING, AttemptState.RUNNING)
        ]
        if worker.id != known:
            await self.context.journal.wait_durable()
        lease = self.reports.lease
        return pb.JoinResponse(
            worker=worker.id,
            renew_every_ms=round(lease.renew_every.ms),
            lease_ms=round(lease.lasts.ms),
            token=self.worker_tokens.worker_token(worker.id),
            begun=list[str](begun),
        )

    async def orders(self, request: pb.OrdersRequest, ctx: object) -> AsyncIterator[pb.OrderBatch]:
        check_is_worker(request.worker)
        worker = WorkerId(request.worker)
        if worker not in self.context.cluster.workers:
            raise NotFound(
                "iris.no_worker", f"The worker {request.worker[:80]} is not known.", hint="Join again."
            )
        async for batch in self.dispatcher.orders(worker):
            yield batch

    async def report(self, request: pb.ReportRequest, ctx: object) -> pb.ReportResponse:
        check_is_worker(request.worker)
        unproven = [seen.attempt for seen in request.seen if not self._proven(request.worker, seen)]
        if unproven:
            request.seen = [seen for seen in request.seen if seen.attempt not in unproven]
        # Logs first, so that the log of an ended job is complete.
        for seen in request.seen:
            if seen.log is not None:
                # This is the end of the log: text that the controller has lost is not sent again.
                seen.log.gap = True
                self._keep(request.worker, seen.log)
        unknown = await self.reports.take(request)
        if request.seen:
            # A report without attempts is a heartbeat, and a slow disk must not end the worker's lease.
            await self.context.journal.wait_durable()
        return pb.ReportResponse(forget=[*unknown, *unproven])

    async def push_logs(self, request: pb.PushLogsRequest, ctx: object) -> pb.PushLogsResponse:
        check_is_worker(request.worker)
        if len(request.chunks) > CHUNKS_MAX:
            raise Invalid(
                "iris.log_chunks",
                f"The message has {len(request.chunks)} chunks of logs; at most {CHUNKS_MAX} are allowed.",
                hint="Send fewer and larger chunks.",
            )
        kept = {chunk.attempt: self._keep(request.worker, chunk) for chunk in request.chunks}
        return pb.PushLogsResponse(kept=kept)

    def _proven(self, worker: str, report: pb.Seen | pb.LogChunk) -> bool:
        """Checks the key of the attempt. A task that finds its worker's token does not have this key."""
        proven = self.worker_tokens.check_report(AttemptId(report.attempt), report.report_key)
        if not proven:
            log.warning(
                "refused a report without the attempt's key", worker=worker, attempt=report.attempt[:80]
            )
        return proven

    def _keep(self, worker: str, chunk: pb.LogChunk) -> int:
        attempt = self.context.cluster.attempts.get(AttemptId(chunk.attempt))
        if attempt is None or attempt.worker != worker or not self._proven(worker, chunk):
            # The text has no reader, so it is confirmed and dropped.
            return chunk.offset + len(chunk.text)
        return self.log_store.append(attempt.job, attempt.id, chunk.offset, chunk.text, gap=chunk.gap)
