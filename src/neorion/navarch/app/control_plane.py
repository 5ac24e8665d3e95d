"""The control plane: one store, the fleet's state, its loops, and one port."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import anyio

from neorion.capacity.prices import PriceTable
from neorion.keel.base import Denied, Duration
from neorion.keel.clock import Clock, Ids, Rng
from neorion.keel.rpc import (
    ANYONE,
    AsgiApp,
    PinnedToken,
    Principal,
    RequestLimits,
    Route,
    RouteRequest,
    RouteResponse,
    RpcService,
)
from neorion.keel.run import Loop, LoopTiming, Supervisor, TickObserver
from neorion.keel.run.loop import ignore_ticks
from neorion.keel.store import Store, migrations_in
from neorion.keel.telemetry import logger
from neorion.keel.telemetry.metrics import CONTENT_TYPE, LoopMetrics, Metrics
from neorion.navarch.app.removal_guard import check_in_use
from neorion.navarch.controllers.context import Backends, FleetContext
from neorion.navarch.controllers.demand import DemandCollector
from neorion.navarch.controllers.fleet_controller import FleetController
from neorion.navarch.controllers.garbage_collection import GarbageCollector
from neorion.navarch.controllers.operator_actions import OperatorActions
from neorion.navarch.controllers.pricing import PriceRefresher
from neorion.navarch.controllers.retention import RecordRetention
from neorion.navarch.model import PoolSpec
from neorion.navarch.model.gen.navarch_connect import (
    AgentServiceASGIApplication,
    FleetServiceASGIApplication,
)
from neorion.navarch.serve.agents import AgentEndpoint
from neorion.navarch.serve.authentication import (
    JOIN,
    NODE,
    OPERATOR,
    VIEWER,
    NodeTokenAuthenticator,
    SharedTokens,
)
from neorion.navarch.serve.fleet import FleetEndpoint
from neorion.navarch.serve.metrics import FleetMetrics
from neorion.navarch.state import FleetState, Journal, installation, load

log = logger(__name__)

SCHEMA = "neorion.navarch.state.schema"
MIGRATIONS = migrations_in(SCHEMA)
# Methods that change nothing, for viewers.
READS: Final = frozenset(
    {"ListPools", "GetPool", "ListNodes", "GetNode", "History", "Explain", "Plan", "Doctor"}
)
# Clouds return prices in a second or two. The start does not wait longer than this for a slow one.
PRICES_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class LoopIntervals:
    """Intervals of the loops. Changes wake a loop at once, so `tick` only bounds the effect of a lost wake."""

    tick: Duration = field(default=Duration.of(seconds=30))
    sweep: Duration = field(default=Duration.of(seconds=60))
    retention: Duration = field(default=Duration.of(minutes=5))
    # Prices change by the day and stock by the minute; more often would use up what small clouds allow.
    market: Duration = field(default=Duration.of(minutes=2))


@dataclass(frozen=True, slots=True)
class ControlPlaneSettings:
    """Settings of a control plane: its pools, its intervals and the tokens of its clients."""

    specs: dict[str, PoolSpec]
    token: str
    join_token: str = ""
    viewer_token: str = ""
    autoscale: Duration = field(default=Duration.of(seconds=30))
    health_check: Duration = field(default=Duration.of(seconds=60))
    rhythm: LoopIntervals = LoopIntervals()
    # Where agents reach it, and what proves that it is the right server.
    address: str = ""
    pin: str = ""
    # By provider.
    prices: Mapping[str, PriceTable] = field(default_factory=dict[str, PriceTable])


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Clock, ids, random numbers and the store of the process. Simulations have no metrics."""

    store: Store
    clock: Clock
    ids: Ids
    rng: Rng
    metrics: Metrics | None = None


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A control plane at work; `app` is what it serves."""

    fleet: FleetController
    orders: OperatorActions
    sweep: GarbageCollector
    keys: NodeTokenAuthenticator
    app: AsgiApp


@asynccontextmanager
async def build(
    settings: ControlPlaneSettings, backends: Backends, parts: Dependencies
) -> AsyncGenerator[ControlPlane]:
    """Runs the loops while the block runs. What it knew before is read first, and what it had begun goes on."""
    watch = LoopMetrics(parts.metrics) if parts.metrics is not None else ignore_ticks
    async with Supervisor() as crew:
        fleet = await _fleet(settings, backends, parts, crew)
        orders, sweep = OperatorActions(fleet), GarbageCollector(fleet)
        shared = SharedTokens(settings.token, settings.join_token, settings.viewer_token)
        keys = NodeTokenAuthenticator(fleet.context.installation.secret, parts.clock, shared)
        fleet.context.node_token = lambda node: str(PinnedToken(settings.pin, keys.token_of(node)))
        app = AsgiApp(
            _services(fleet, orders, sweep, keys, settings.health_check),
            _routes(fleet, parts.metrics),
            ids=parts.ids,
            authenticator=keys,
            limits=RequestLimits(member_roles=frozenset({NODE})),
            on_denied=_log_denied,
        )
        await _start(settings, fleet, sweep, crew, watch)
        try:
            yield ControlPlane(fleet, orders, sweep, keys, app)
        finally:
            crew.cancel()


async def _fleet(
    settings: ControlPlaneSettings, backends: Backends, parts: Dependencies, crew: Supervisor
) -> FleetController:
    journal = Journal(parts.store, parts.clock, parts.rng)
    crew.spawn("navarch.store", parts.store.until_lost)
    crew.spawn("navarch.journal", journal.run)
    state = FleetState(journal)
    now = parts.clock.now()
    await load(parts.store, state, now)
    check_in_use(state, settings.specs, backends.providers)
    context = FleetContext(
        state=state,
        journal=journal,
        store=parts.store,
        backends=backends,
        specs=settings.specs,
        installation=await installation(parts.store, parts.ids),
        clock=parts.clock,
        ids=parts.ids,
        rng=parts.rng,
        started=now,
        address=settings.address,
    )
    return FleetController(context)


async def _start(
    settings: ControlPlaneSettings,
    fleet: FleetController,
    sweep: GarbageCollector,
    crew: Supervisor,
    watch: TickObserver,
) -> None:
    clock, rng = fleet.context.clock, fleet.context.rng
    rhythm = settings.rhythm
    turning = Loop("navarch.tick", fleet.tick, LoopTiming(rhythm.tick), clock, rng, watch)
    fleet.context.wake = turning.wake
    # Before the first tick: what it begins must not be lost.
    await crew.start("navarch.errands", fleet.effects.run)
    prices = PriceRefresher(fleet.context, settings.prices).tick
    await _first(prices)
    crew.loop(turning)
    survey = DemandCollector(fleet.context).tick
    crew.loop(Loop("navarch.demand", survey, LoopTiming(settings.autoscale), clock, rng, watch))
    crew.loop(Loop("navarch.market", prices, LoopTiming(rhythm.market), clock, rng, watch))
    crew.loop(Loop("navarch.sweep", sweep.tick, LoopTiming(rhythm.sweep), clock, rng, watch))
    telling = Loop(
        "navarch.incidents", fleet.incident_recorder.tick, LoopTiming(rhythm.tick), clock, rng, watch
    )
    fleet.incident_recorder.wake = telling.wake
    crew.loop(telling)
    retain = RecordRetention(fleet).tick
    crew.loop(Loop("navarch.retention", retain, LoopTiming(rhythm.retention), clock, rng, watch))


async def _first(prices: Callable[[], Awaitable[None]]) -> None:
    """Where machines are bought by price or stock, the first after a start are too; but it goes on without."""
    with anyio.move_on_after(PRICES_S):
        try:
            await prices()
        except Exception as error:  # noqa: BLE001 -- whatever it was, the loop of the market asks again
            log.failure("prices are not known", error)


async def _log_denied(principal: Principal, path: str, error: Denied) -> None:
    log.warning("call refused", caller=principal.name, path=path, code=error.code)


def _services(
    fleet: FleetController,
    orders: OperatorActions,
    sweep: GarbageCollector,
    keys: NodeTokenAuthenticator,
    health_check: Duration,
) -> list[RpcService]:
    """Every method and its roles. Methods that are not listed as reads are for operators alone."""
    operators = FleetEndpoint(fleet, orders, sweep)
    return [
        RpcService(
            AgentServiceASGIApplication,
            AgentEndpoint(fleet, keys, health_check),
            {"Register": {JOIN, NODE}, "Heartbeat": {NODE}, "Report": {NODE}},
        ),
        RpcService(
            FleetServiceASGIApplication,
            operators,
            {
                method.name: {OPERATOR, VIEWER} if method.name in READS else {OPERATOR}
                for method in operators.desc().methods
            },
        ),
    ]


def _routes(fleet: FleetController, metrics: Metrics | None) -> list[Route]:
    async def live(request: RouteRequest) -> RouteResponse:
        del request
        return RouteResponse(b"ok\n")

    async def ready(request: RouteRequest) -> RouteResponse:
        """Ready while the store accepts writes."""
        del request
        await fleet.context.journal.wait_durable()
        return RouteResponse(b"ok\n")

    everybody = frozenset({ANYONE})
    routes = [Route("GET", "/healthz", live, everybody), Route("GET", "/readyz", ready, everybody)]
    if metrics is not None:
        numbers = FleetMetrics(metrics, fleet)
        fleet.context.watch = numbers.watch

        async def exposition(request: RouteRequest) -> RouteResponse:
            del request
            return RouteResponse(numbers.exposition(), content_type=CONTENT_TYPE)

        routes.append(Route("GET", "/metrics", exposition, everybody))
    return routes
