"""The controller process: one store, one state in memory, its loops, and one port."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from neorion.iris.app.endpoints import routes, services
from neorion.iris.app.parts import ControllerParts, ControllerSettings, assemble, connect
from neorion.iris.app.standby import Leadership, leader_gauge
from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.metrics import PrometheusControllerMetrics
from neorion.iris.controllers.worker_tokens import WORKER
from neorion.iris.serve.task_auth import TaskTokenAuthenticator
from neorion.iris.state import last_number, load
from neorion.keel.base import Duration
from neorion.keel.clock import Clock, Ids, Rng
from neorion.keel.rpc import (
    AnonymousFallback,
    AsgiApp,
    Authenticator,
    ChainedAuthenticator,
    RequestLimits,
    serve,
)
from neorion.keel.run import Loop, LoopTiming, Supervisor, TickObserver
from neorion.keel.telemetry.metrics import LoopMetrics, Metrics

# Wakes do the work; this only bounds how long a lost one could matter.
_SCHEDULE = LoopTiming(Duration.of(seconds=10))
# Calls in flight at the end: long polls are told to come back, the rest is quick.
_GRACE = Duration.of(seconds=2)
# Each tick returns when the next deadline is; as above.
_DEADLINES = LoopTiming(Duration.of(seconds=10))
# Jobs are kept for days, but their number grows by the minute.
_JOB_GC = LoopTiming(Duration.of(minutes=1))
# A blob that no job names for so long was sent in vain: submissions follow their blobs within minutes.
_BLOB_GC = LoopTiming(Duration.of(hours=1))


@dataclass(frozen=True, slots=True)
class RunningController:
    """A controller that serves at `address`."""

    address: str
    parts: ControllerParts
    watch: TickObserver


@asynccontextmanager
async def controller(
    settings: ControllerSettings, leadership: Leadership, clock: Clock, rng: Rng, ids: Ids
) -> AsyncGenerator[RunningController]:
    """Runs the controller that leads while the block runs."""
    store, listen = leadership.store, leadership.listen
    metrics = Metrics()
    watch = LoopMetrics(metrics)
    # A supervisor of its own, because the store must outlive all that write to it.
    async with Supervisor() as crew:
        context = ControllerContext.for_store(store, clock, ids, rng, PrometheusControllerMetrics(metrics))
        leader_gauge(metrics, leads=True)
        parts = await start(settings, context, crew, watch)
        app = AsgiApp(
            services(parts),
            routes(context, metrics),
            ids=ids,
            authenticator=_authenticator(settings, parts),
            limits=RequestLimits(member_roles=frozenset({WORKER})),
            on_denied=parts.audit_log.denied,
        )
        app.check_leader = store.check_lease
        async with serve(app, listen.host, listen.port, tls=listen.tls, grace=_GRACE) as server:
            yield RunningController(server.address, parts, watch)
        crew.cancel()


async def start(
    settings: ControllerSettings, context: ControllerContext, crew: Supervisor, watch: TickObserver
) -> ControllerParts:
    """Loads the state from the store, and starts the loops."""
    crew.spawn("iris.store", context.store.until_lost)
    crew.spawn("iris.journal", context.journal.run)
    await load(context.store, context.cluster)
    parts = assemble(settings, context, await last_number(context.store))
    connect(parts, autoscaled=settings.autoscaled)
    clock, rng = context.clock, context.rng
    liveness = LoopTiming(settings.lease.renew_every * 0.5)
    schedule = Loop("iris.schedule", parts.scheduler.tick, _SCHEDULE, clock, rng, watch)
    deadlines = Loop("iris.deadlines", parts.deadlines.tick, _DEADLINES, clock, rng, watch)
    context.wake.add(schedule.wake)
    parts.deadlines.wake.add(deadlines.wake)
    crew.spawn("iris.herald", parts.publisher.run)
    crew.loop(schedule)
    crew.loop(Loop("iris.watch", parts.reports.tick, liveness, clock, rng, watch))
    crew.loop(deadlines)
    crew.loop(Loop("iris.retention", parts.job_gc.tick, _JOB_GC, clock, rng, watch))
    crew.loop(Loop("iris.orphans", parts.blob_gc.tick, _BLOB_GC, clock, rng, watch))
    return parts


def _authenticator(settings: ControllerSettings, parts: ControllerParts) -> Authenticator | None:
    """Tasks, workers and accounts, in this order. Without accounts tokens are not asked for."""
    if settings.authenticator is None:
        return None
    tasks = TaskTokenAuthenticator(parts.context.cluster)
    callers = ChainedAuthenticator(tasks, parts.worker_tokens, settings.authenticator)
    return AnonymousFallback(callers, settings.guest) if settings.guest else callers
