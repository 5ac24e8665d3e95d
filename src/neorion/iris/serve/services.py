"""What the services share: the controller's parts, by name."""

from collections.abc import Callable
from dataclasses import dataclass, field

from neorion.iris.controllers.audit_log import AuditLog
from neorion.iris.controllers.blob_gc import BlobGarbageCollector
from neorion.iris.controllers.blob_store import BlobStore
from neorion.iris.controllers.blob_upload import BlobUploads
from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.deadlines import DeadlineController
from neorion.iris.controllers.dispatcher import Dispatcher
from neorion.iris.controllers.job_gc import JobGarbageCollector
from neorion.iris.controllers.job_watch import JobWatchHub
from neorion.iris.controllers.lifecycle import LifecycleManager
from neorion.iris.controllers.log_store import LogStore
from neorion.iris.controllers.publisher import TransitionPublisher
from neorion.iris.controllers.scheduler import Scheduler
from neorion.iris.controllers.worker_reports import WorkerReports
from neorion.iris.controllers.worker_tokens import WorkerTokens
from neorion.iris.decide import beyond_cap, feasible
from neorion.iris.model import JobId, JobSpec, PendingCode, PendingReason, TaskState, UserQuotas, WorkerShape
from neorion.keel.base import Instant, Invalid
from neorion.keel.store import Store


@dataclass(slots=True)
class ControllerServices:
    """One controller. `shapes` are the workers that its scale groups could bring."""

    context: ControllerContext
    store: Store
    lifecycle: LifecycleManager
    deadlines: DeadlineController
    dispatcher: Dispatcher
    publisher: TransitionPublisher
    scheduler: Scheduler
    reports: WorkerReports
    blobs: BlobStore
    uploads: BlobUploads
    blob_gc: BlobGarbageCollector
    log_store: LogStore
    job_gc: JobGarbageCollector
    worker_tokens: WorkerTokens
    audit: AuditLog
    watchers: JobWatchHub
    started: Instant
    shapes: list[WorkerShape] = field(default_factory=list[WorkerShape])
    caps: UserQuotas = field(default=UserQuotas())
    # What an autoscaler knows better than the scheduler: that help is on its way, or why it is not.
    scaling_reason: Callable[[JobId], PendingReason | None] = lambda _: None

    async def check_worker_liveness(self) -> None:
        """Finds workers that fell silent."""
        self.reports.watch()

    def reason(self, job: JobId) -> PendingReason | None:
        """Why some of its tasks wait, or None if none does."""
        cluster = self.context.cluster
        if not cluster.counts[job][TaskState.PENDING]:
            stuck = self.reports.stuck(job)
            return PendingReason(PendingCode.WORKER_DISK, subject=stuck.worker) if stuck else None
        reason = self.scaling_reason(job) or self.scheduler.reasons.get(job)
        if reason is not None:
            return reason
        waiting = (task for task in cluster.live_tasks(job) if task.state is TaskState.PENDING)
        settling = sum(task.attempt in cluster.attempts for task in waiting)
        return PendingReason(PendingCode.SETTLING, best=settling) if settling else None

    def notify_reason_changes(self) -> None:
        """Tells those who watch a job when it waits for another reason."""
        self.watchers.look(self.reason)

    def refresh_metrics(self) -> None:
        """Brings the gauges up to date. It costs time for each waiting job."""
        cluster = self.context.cluster
        found = (self.reason(job) for job in cluster.waiting())
        self.context.metrics.look(cluster, (reason.code for reason in found if reason is not None))

    def check_feasible(self, spec: JobSpec) -> None:
        """Refuses at once what could never run here."""
        user, together = spec.name.user, spec.replicas if spec.placement.gang else 1
        self._refuse(beyond_cap(self.caps.of(user), user, spec.resources, together))
        cluster = self.context.cluster
        present = {w.id: WorkerShape(w.total, w.attributes) for w in cluster.workers.values()}
        # What scale groups have made is among what they may make, and is not counted twice.
        by_hand = [
            shape for worker, shape in present.items() if cluster.workers[worker].slice not in cluster.slices
        ]
        offers = [offer for offer in ([*self.shapes, *by_hand], [*present.values()]) if offer]
        refusals = [feasible(spec.resources, spec.placement, spec.replicas, offer) for offer in offers]
        if refusals and None not in refusals:
            self._refuse(refusals[0])

    def _refuse(self, reason: PendingReason | None) -> None:
        if reason is not None:
            raise Invalid("iris.infeasible", reason.sentence, hint=reason.hint)
