"""The controller process: one store, one book, its loops, and one port."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from neorion.iris.adapters.blobs import open_blobs
from neorion.iris.controllers.audit_log import Audit
from neorion.iris.controllers.blob_gc import Orphans
from neorion.iris.controllers.blob_store import Blobs
from neorion.iris.controllers.blob_upload import Arrivals
from neorion.iris.controllers.context import Deck
from neorion.iris.controllers.deadlines import Deadlines
from neorion.iris.controllers.dispatcher import Dispatch
from neorion.iris.controllers.job_gc import Retention
from neorion.iris.controllers.job_watch import Watchers
from neorion.iris.controllers.lifecycle import Lives
from neorion.iris.controllers.log_store import LogShelf
from neorion.iris.controllers.metrics import Measured
from neorion.iris.controllers.publisher import Herald
from neorion.iris.controllers.scheduler import Scheduler
from neorion.iris.controllers.worker_reports import Reports
from neorion.iris.controllers.worker_tokens import JOINER, WORKER, Badges, Callers
from neorion.iris.model import Caps, JobId, WorkerShape
from neorion.iris.model.gen.iris_connect import (
    ClusterServiceASGIApplication,
    JobServiceASGIApplication,
    WorkerServiceASGIApplication,
)
from neorion.iris.model.lease import Lease
from neorion.iris.ports import KeptSecret
from neorion.iris.serve.cluster import Cluster
from neorion.iris.serve.jobs import Jobs
from neorion.iris.serve.services import Desk
from neorion.iris.serve.task_auth import TASK, TaskTokens
from neorion.iris.serve.workers import Workers
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
USERS = {"admin", "user"}
# Tasks submit jobs too; what they reach is checked call by call.
WITH_WORK = USERS | {TASK}


@dataclass(frozen=True, slots=True)
class Settings:
    """Where a controller lives and how it behaves. Without an authenticator, or with a guest, it serves this machine alone.

    `secret` is what the tokens of workers follow from, `by_hand` the token of machines that no platform starts. `database` is the address of a PostgreSQL; without it there is a
    SQLite file in `folder`. Large blobs go to `blobs`, a folder or an address such as s3://bucket/path, or to a folder in
    `folder`.
    """

    folder: Path
    host: str = "127.0.0.1"
    port: int = 10000
    authenticator: Authenticator | None = None
    guest: Principal | None = None
    shapes: list[WorkerShape] = field(default_factory=list[WorkerShape])
    secret: str = field(default="", repr=False)
    by_hand: KeptSecret | None = None
    database: str = field(default="", repr=False)
    blobs: str = ""
    caps: Caps = field(default=Caps())
    keep_jobs_for: Duration = field(default=Duration.of(hours=7 * 24))
    lease: Lease = field(default=Lease.within(Duration.of(seconds=4.6)))


@dataclass(frozen=True, slots=True)
class Running:
    """A controller that answers."""

    address: str
    desk: Desk
    watch: TickObserver


@asynccontextmanager
async def controller(settings: Settings, clock: Clock, rng: Rng, ids: Ids) -> AsyncGenerator[Running]:
    """Runs a controller while the block runs."""
    settings.folder.mkdir(parents=True, exist_ok=True)
    async with open_store(
        settings.database or settings.folder / "iris.db", migrations=migrations_in(SCHEMA), clock=clock
    ) as store:
        metrics = Metrics()
        watch = LoopMetrics(metrics)
        # A crew of its own, because the store must outlive whoever writes to it.
        async with Supervisor() as crew:
            deck = Deck.over(store, clock, ids, rng, Measured(metrics))
            desk = await start(settings, deck, store, crew, watch)
            accounts = settings.authenticator and Callers(desk.badges, settings.authenticator)
            callers = accounts and TaskTokens(deck.book, accounts)
            if callers and settings.guest:
                callers = AnonymousFallback(callers, settings.guest)
            app = AsgiApp(
                services(desk),
                routes(desk, metrics),
                ids=ids,
                authenticator=callers,
                limits=RequestLimits(member_roles=frozenset({WORKER})),
                on_denied=desk.audit.denied,
            )
            async with serve(app, settings.host, settings.port, grace=_GRACE) as server:
                yield Running(server.address, desk, watch)
            crew.cancel()


async def start(settings: Settings, deck: Deck, store: Store, crew: Supervisor, watch: TickObserver) -> Desk:
    """Reads what is known and sets the loops going."""
    crew.spawn("iris.store", store.until_lost)
    crew.spawn("iris.journal", deck.journal.run)
    await load(store, deck.book)
    desk = assemble(settings, deck, store, await last_number(store))
    clock, rng = deck.clock, deck.rng
    placing = Loop("iris.schedule", desk.scheduler.tick, _SCHEDULE, clock, rng, watch)
    deck.wake = placing.wake
    desk.scheduler.after = desk.look_at_reasons
    crew.spawn("iris.herald", desk.herald.run)
    crew.loop(placing)
    watching = LoopTiming(settings.lease.renew_every * 0.5)
    crew.loop(Loop("iris.watch", desk.look_after_workers, watching, clock, rng, watch))
    waits = Loop("iris.deadlines", desk.deadlines.tick, _DEADLINES, clock, rng, watch)
    desk.deadlines.wake = waits.wake
    crew.loop(waits)
    crew.loop(Loop("iris.retention", desk.retention.tick, _RETENTION, clock, rng, watch))
    crew.loop(Loop("iris.orphans", desk.orphans.tick, _ORPHANS, clock, rng, watch))
    return desk


def assemble(settings: Settings, deck: Deck, store: Store, last_deed: int) -> Desk:
    lives = Lives(deck)
    blobs = Blobs(deck.journal, store, open_blobs(settings.blobs, settings.folder / "blobs"))
    arrivals = Arrivals(settings.folder / "arriving", blobs, deck.clock)
    shelf = LogShelf(settings.folder / "logs")
    dispatch = Dispatch(deck, blobs)
    watchers, deadlines = Watchers(), Deadlines(deck, lives)

    def stirred(job: JobId, index: int | None) -> None:
        watchers.stir(job, index)
        deadlines.stirred(job, index)

    deck.book.stirred = stirred
    return Desk(
        deck=deck,
        store=store,
        lives=lives,
        deadlines=deadlines,
        dispatch=dispatch,
        herald=Herald(deck, lives, dispatch, shelf),
        scheduler=Scheduler(deck, lives, settings.caps),
        reports=Reports(deck, lives, blobs, settings.lease),
        blobs=blobs,
        arrivals=arrivals,
        orphans=Orphans(deck.book, blobs, arrivals),
        shelf=shelf,
        retention=Retention(deck, store, blobs, shelf, settings.keep_jobs_for),
        badges=Badges(settings.secret, deck.book, settings.by_hand),
        audit=Audit(deck, last_deed),
        watchers=watchers,
        started=deck.clock.now(),
        shapes=settings.shapes,
        caps=settings.caps,
    )


def services(desk: Desk) -> list[RpcService]:
    """Every method and who may call it."""
    workers_too = WITH_WORK | {WORKER}
    return [
        RpcService(
            JobServiceASGIApplication,
            Jobs(desk),
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
            Cluster(desk),
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
            Workers(desk),
            {"Join": {JOINER, WORKER}, "Orders": {WORKER}, "Report": {WORKER}, "PushLogs": {WORKER}},
        ),
    ]


def routes(desk: Desk, metrics: Metrics) -> list[Route]:
    async def health(request: Request) -> Response:
        del request
        return Response(b"ok\n")

    async def exposition(request: Request) -> Response:
        del request
        desk.look_at_meters()
        return Response(metrics.exposition(), content_type=CONTENT_TYPE)

    return [
        Route("GET", "/health", health, frozenset({ANYONE})),
        Route("GET", "/metrics", exposition, frozenset({ANYONE})),
    ]
