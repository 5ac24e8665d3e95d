"""The controller process: one store, one book, its loops, and one port."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from neorion.iris.adapters.blobs import open_blobs
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
from neorion.iris.controllers.metrics import PrometheusControllerMetrics
from neorion.iris.controllers.publisher import TransitionPublisher
from neorion.iris.controllers.scheduler import Scheduler
from neorion.iris.controllers.worker_reports import WorkerReports
from neorion.iris.controllers.worker_tokens import ROLE_JOIN, WORKER, ChainedAuthenticator, WorkerTokens
from neorion.iris.model import JobId, UserQuotas, WorkerShape
from neorion.iris.model.gen.iris_connect import (
    ClusterServiceASGIApplication,
    JobServiceASGIApplication,
    WorkerServiceASGIApplication,
)
from neorion.iris.model.lease import WorkerLeaseTiming
from neorion.iris.ports import RotatableSecret
from neorion.iris.serve.cluster import ClusterEndpoint
from neorion.iris.serve.jobs import JobEndpoint
from neorion.iris.serve.services import ControllerServices
from neorion.iris.serve.task_auth import TASK, TaskTokenAuthenticator
from neorion.iris.serve.workers import WorkerEndpoint
from neorion.iris.state import last_number, load
from neorion.keel.base import Duration
from neorion.keel.clock import Clock, Ids, Rng
from neorion.keel.rpc import (
    ANYONE,
    AnonymousFallback,
    AsgiApp,
    Authenticator,
    Principal,
    Request,
    RequestLimits,
    Response,
    Route,
    RpcService,
    ServerTls,
    serve,
)
from neorion.keel.run import Loop, LoopTiming, Supervisor, TickObserver
from neorion.keel.store import Store, migrations_in, open_store
from neorion.keel.telemetry.metrics import CONTENT_TYPE, LoopMetrics, Metrics

SCHEMA = "neorion.iris.state.schema"
# Wakes do the work; this only bounds how long a lost one could matter.
_SCHEDULE = LoopTiming(Duration.of(seconds=10))
# Calls in flight at the end: long polls are told to come back, the rest is quick.
_GRACE = Duration.of(seconds=2)
# It knows itself when to look; as above.
_DEADLINES = LoopTiming(Duration.of(seconds=10))
# Jobs are kept for days, but their number grows by the minute.
_RETENTION = LoopTiming(Duration.of(minutes=1))
# A blob that no job names for so long was sent in vain: submissions follow their blobs within minutes.
_ORPHANS = LoopTiming(Duration.of(hours=1))
# Anyone may read the metrics, and the gauges cost time for each waiting job: they are shown as they were for so long.
GAUGES_FOR = Duration.of(seconds=1)
USERS = {"admin", "user"}
# Tasks submit jobs too; what they reach is checked call by call.
WITH_WORK = USERS | {TASK}


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Where a controller lives and how it behaves. Without an authenticator, or with a guest, it serves this machine alone.

    `secret` is what the tokens of workers follow from, `by_hand` the token of machines that no platform starts. `database` is the address of a PostgreSQL; without it there is a
    SQLite file in `folder`. Large blobs go to `blobs`, a folder or an address such as s3://bucket/path, or to a folder in
    `folder`. Without `tls` it serves plain HTTP and cannot prove to its callers who it is.
    """

    folder: Path
    host: str = "127.0.0.1"
    port: int = 10000
    tls: ServerTls | None = None
    authenticator: Authenticator | None = None
    guest: Principal | None = None
    shapes: list[WorkerShape] = field(default_factory=list[WorkerShape])
    secret: str = field(default="", repr=False)
    by_hand: RotatableSecret | None = None
    database: str = field(default="", repr=False)
    blobs: str = ""
    caps: UserQuotas = field(default=UserQuotas())
    keep_jobs_for: Duration = field(default=Duration.of(hours=7 * 24))
    lease: WorkerLeaseTiming = field(default=WorkerLeaseTiming.within(Duration.of(seconds=4.6)))


@dataclass(frozen=True, slots=True)
class RunningController:
    """A controller that answers."""

    address: str
    parts: ControllerServices
    watch: TickObserver


@asynccontextmanager
async def controller(
    settings: ControllerSettings, clock: Clock, rng: Rng, ids: Ids
) -> AsyncGenerator[RunningController]:
    """Runs a controller while the block runs."""
    settings.folder.mkdir(parents=True, exist_ok=True)
    async with open_store(
        settings.database or settings.folder / "iris.db", migrations=migrations_in(SCHEMA), clock=clock
    ) as store:
        metrics = Metrics()
        watch = LoopMetrics(metrics)
        # A crew of its own, because the store must outlive whoever writes to it.
        async with Supervisor() as crew:
            context = ControllerContext.for_store(
                store, clock, ids, rng, PrometheusControllerMetrics(metrics)
            )
            parts = await start(settings, context, store, crew, watch)
            accounts = settings.authenticator and ChainedAuthenticator(
                parts.worker_tokens, settings.authenticator
            )
            callers = accounts and TaskTokenAuthenticator(context.cluster, accounts)
            if callers and settings.guest:
                callers = AnonymousFallback(callers, settings.guest)
            app = AsgiApp(
                services(parts),
                routes(parts, metrics),
                ids=ids,
                authenticator=callers,
                limits=RequestLimits(member_roles=frozenset({WORKER})),
                on_denied=parts.audit.denied,
            )
            async with serve(app, settings.host, settings.port, tls=settings.tls, grace=_GRACE) as server:
                yield RunningController(server.address, parts, watch)
            crew.cancel()


async def start(
    settings: ControllerSettings,
    context: ControllerContext,
    store: Store,
    crew: Supervisor,
    watch: TickObserver,
) -> ControllerServices:
    """Reads what is known and sets the loops going."""
    crew.spawn("iris.store", store.until_lost)
    crew.spawn("iris.journal", context.journal.run)
    await load(store, context.cluster)
    parts = assemble(settings, context, store, await last_number(store))
    clock, rng = context.clock, context.rng
    placing = Loop("iris.schedule", parts.scheduler.tick, _SCHEDULE, clock, rng, watch)
    context.wake = placing.wake
    parts.scheduler.after = parts.notify_reason_changes
    crew.spawn("iris.herald", parts.publisher.run)
    crew.loop(placing)
    watching = LoopTiming(settings.lease.renew_every * 0.5)
    crew.loop(Loop("iris.watch", parts.check_worker_liveness, watching, clock, rng, watch))
    waits = Loop("iris.deadlines", parts.deadlines.tick, _DEADLINES, clock, rng, watch)
    parts.deadlines.wake = waits.wake
    crew.loop(waits)
    crew.loop(Loop("iris.retention", parts.job_gc.tick, _RETENTION, clock, rng, watch))
    crew.loop(Loop("iris.orphans", parts.blob_gc.tick, _ORPHANS, clock, rng, watch))
    return parts


def assemble(
    settings: ControllerSettings, context: ControllerContext, store: Store, last_deed: int
) -> ControllerServices:
    lifecycle = LifecycleManager(context)
    blobs = BlobStore(context.journal, store, open_blobs(settings.blobs, settings.folder / "blobs"))
    uploads = BlobUploads(settings.folder / "arriving", blobs, context.clock)
    log_store = LogStore(settings.folder / "logs")
    worker_tokens = WorkerTokens(settings.secret, context.cluster, settings.by_hand)
    dispatcher = Dispatcher(context, blobs, worker_tokens.report_key)
    watchers, deadlines = JobWatchHub(), DeadlineController(context, lifecycle)

    def stirred(job: JobId, index: int | None) -> None:
        watchers.notify(job, index)
        deadlines.stirred(job, index)

    context.cluster.stirred = stirred
    return ControllerServices(
        context=context,
        store=store,
        lifecycle=lifecycle,
        deadlines=deadlines,
        dispatcher=dispatcher,
        publisher=TransitionPublisher(context, lifecycle, dispatcher, log_store),
        scheduler=Scheduler(context, lifecycle, settings.caps),
        reports=WorkerReports(context, lifecycle, blobs, settings.lease),
        blobs=blobs,
        uploads=uploads,
        blob_gc=BlobGarbageCollector(context.cluster, blobs, uploads),
        log_store=log_store,
        job_gc=JobGarbageCollector(context, store, blobs, log_store, settings.keep_jobs_for),
        worker_tokens=worker_tokens,
        audit=AuditLog(context, last_deed),
        watchers=watchers,
        started=context.clock.now(),
        shapes=settings.shapes,
        caps=settings.caps,
    )


def services(parts: ControllerServices) -> list[RpcService]:
    """Every method and who may call it."""
    workers_too = WITH_WORK | {WORKER}
    return [
        RpcService(
            JobServiceASGIApplication,
            JobEndpoint(parts),
            {
                "Submit": WITH_WORK,
                "Wait": WITH_WORK,
                "Get": WITH_WORK,
                "List": WITH_WORK,
                "Tasks": WITH_WORK,
                "Attempts": WITH_WORK,
                "Cancel": WITH_WORK,
                "Logs": WITH_WORK,
                "Watch": WITH_WORK,
                "GetBlob": workers_too,
                "PutBlob": workers_too,
            },
        ),
        RpcService(
            ClusterServiceASGIApplication,
            ClusterEndpoint(parts),
            {
                "Status": USERS,
                "Workers": USERS,
                "Slices": USERS,
                # For administrators alone; checked by the handlers, so that a refusal is on record.
                "Drain": USERS,
                "Revoke": USERS,
                "Audit": USERS,
            },
        ),
        RpcService(
            WorkerServiceASGIApplication,
            WorkerEndpoint(parts),
            {"Join": {ROLE_JOIN, WORKER}, "Orders": {WORKER}, "Report": {WORKER}, "PushLogs": {WORKER}},
        ),
    ]


def routes(parts: ControllerServices, metrics: Metrics) -> list[Route]:
    async def health(request: Request) -> Response:
        """Alive is alive: a probe that fails would end a controller that only waits for room."""
        del request
        trouble = parts.context.journal.trouble
        return Response(f"the store takes no changes: {trouble}\n".encode() if trouble else b"ok\n")

    clock, fresh_until = parts.context.clock, 0.0

    async def exposition(request: Request) -> Response:
        nonlocal fresh_until
        del request
        if (now := clock.monotonic()) >= fresh_until:
            fresh_until = now + GAUGES_FOR.seconds
            parts.refresh_metrics()
        return Response(metrics.exposition(), content_type=CONTENT_TYPE)

    return [
        Route("GET", "/health", health, frozenset({ANYONE})),
        Route("GET", "/metrics", exposition, frozenset({ANYONE})),
    ]
