"""The parts of a controller: made here, connected here."""

from dataclasses import dataclass, field
from pathlib import Path

from neorion.iris.adapters.blobs import open_blobs
from neorion.iris.controllers.admission import Admission
from neorion.iris.controllers.audit_log import AuditLog
from neorion.iris.controllers.autoscaler import Autoscaler
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
from neorion.iris.model import UserQuotas, WorkerShape
from neorion.iris.model.lease import WorkerLeaseTiming
from neorion.iris.ports import RotatableSecret
from neorion.keel.base import Duration
from neorion.keel.rpc import Authenticator, Principal


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """The files and behaviour of a controller.

    Without an authenticator, or with a guest, it serves this machine alone. Tokens of workers are derived from `secret`;
    `by_hand` is the token of machines that no platform starts. Large blobs go to `blobs`, a folder or an address such as
    s3://bucket/path, or to a folder in `folder`. `shapes` are the workers that scale groups can bring.
    """

    folder: Path
    authenticator: Authenticator | None = None
    guest: Principal | None = None
    shapes: list[WorkerShape] = field(default_factory=list[WorkerShape])
    # An autoscaler follows each scheduling pass.
    autoscaled: bool = False
    secret: str = field(default="", repr=False)
    by_hand: RotatableSecret | None = None
    blobs: str = ""
    caps: UserQuotas = field(default=UserQuotas())
    keep_jobs_for: Duration = field(default=Duration.of(hours=7 * 24))
    lease: WorkerLeaseTiming = field(default=WorkerLeaseTiming.within(Duration.of(seconds=4.6)))


@dataclass(frozen=True, slots=True)
class ControllerParts:
    """One controller's parts. An endpoint or a loop is given those that it uses."""

    context: ControllerContext
    admission: Admission
    lifecycle: LifecycleManager
    scheduler: Scheduler
    deadlines: DeadlineController
    dispatcher: Dispatcher
    publisher: TransitionPublisher
    reports: WorkerReports
    blobs: BlobStore
    uploads: BlobUploads
    log_store: LogStore
    blob_gc: BlobGarbageCollector
    job_gc: JobGarbageCollector
    worker_tokens: WorkerTokens
    audit_log: AuditLog
    watches: JobWatchHub


def assemble(settings: ControllerSettings, context: ControllerContext, last_audit: int) -> ControllerParts:
    """Makes the parts. `last_audit` is the number of the newest entry of the audit log."""
    folder = settings.folder
    lifecycle = LifecycleManager(context)
    blobs = BlobStore(context.journal, context.store, open_blobs(settings.blobs, folder / "blobs"))
    uploads = BlobUploads(folder / "arriving", blobs, context.clock)
    log_store = LogStore(folder / "logs")
    worker_tokens = WorkerTokens(settings.secret, context.cluster, settings.by_hand)
    dispatcher = Dispatcher(context, blobs, worker_tokens.report_key)
    return ControllerParts(
        context=context,
        admission=Admission(context, settings.shapes, settings.caps),
        lifecycle=lifecycle,
        scheduler=Scheduler(context, lifecycle, settings.caps),
        deadlines=DeadlineController(context, lifecycle),
        dispatcher=dispatcher,
        publisher=TransitionPublisher(context, lifecycle, dispatcher, log_store),
        reports=WorkerReports(context, lifecycle, blobs, settings.lease),
        blobs=blobs,
        uploads=uploads,
        log_store=log_store,
        blob_gc=BlobGarbageCollector(context.cluster, blobs, uploads),
        job_gc=JobGarbageCollector(context, blobs, log_store, settings.keep_jobs_for),
        worker_tokens=worker_tokens,
        audit_log=AuditLog(context, last_audit),
        watches=JobWatchHub(context.reasons),
    )


def connect(parts: ControllerParts, *, autoscaled: bool) -> None:
    """Connects what happens in one part to what follows in another. Loops add their wakes where they are made."""
    context = parts.context
    context.journal.on_commit.add(context.metrics.committed)
    context.cluster.on_change.add(parts.watches.notify)
    context.cluster.on_change.add(parts.deadlines.on_change)
    if not autoscaled:
        parts.scheduler.on_pass.add(parts.watches.refresh_reasons)


def connect_autoscaler(parts: ControllerParts, autoscaler: Autoscaler) -> None:
    """The autoscaler follows each scheduling pass. Reasons are complete only after its own pass."""
    parts.scheduler.on_pass.add(autoscaler.wake)
    autoscaler.on_pass.add(parts.watches.refresh_reasons)
