"""Several controllers, one leader: the one that owns the store leads. The others wait, say so, and take over when it ends.

The lease on the store is the election. No other authority can disagree with it: a controller that lost it cannot write.
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskStatus

from neorion.iris.model.gen.iris_connect import (
    ClusterService,
    ClusterServiceASGIApplication,
    JobService,
    JobServiceASGIApplication,
    WorkerService,
    WorkerServiceASGIApplication,
)
from neorion.keel.base import Duration, Error, Retry
from neorion.keel.clock import Clock, Ids
from neorion.keel.rpc import (
    ANYONE,
    KNOWN,
    AsgiApp,
    Principal,
    RequestLimits,
    Route,
    RouteRequest,
    RouteResponse,
    RpcService,
    ServerTls,
    serve,
)
from neorion.keel.run import Supervisor
from neorion.keel.store import Store, await_store, migrations_in, open_store
from neorion.keel.telemetry import logger
from neorion.keel.telemetry.metrics import CONTENT_TYPE, Metrics

log = logger(__name__)

SCHEMA: Final = "neorion.iris.state.schema"
_ASK_AGAIN: Final = Duration.of(ms=500)
_GRACE: Final = Duration.of(ms=200)
# A client that sends half a request must not delay the take-over.
_LIMITS: Final = RequestLimits(header_time=Duration.of(seconds=1))


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """The address of a controller, whether it leads or waits."""

    host: str
    port: int
    tls: ServerTls | None = None


@dataclass(frozen=True, slots=True)
class Leadership:
    """The store, which this process owns, and the address for its answers."""

    store: Store
    listen: ListenAddress


@asynccontextmanager
async def lead(database: str | Path, listen: ListenAddress, clock: Clock) -> AsyncGenerator[Leadership]:
    """Opens the store. A store that another controller owns is refused."""
    async with open_store(database, migrations=migrations_in(SCHEMA), clock=clock) as store:
        yield Leadership(store, listen)


@asynccontextmanager
async def stand_by(
    database: str, listen: ListenAddress, clock: Clock, ids: Ids
) -> AsyncGenerator[Leadership]:
    """Waits until no other controller leads, and opens the store. Meanwhile the address answers as a standby."""
    async with AsyncExitStack() as stack:
        crew = await stack.enter_async_context(Supervisor())
        stack.callback(crew.cancel)
        waiting = StandbyServer(ids)
        address = await crew.start("iris.standby", partial(waiting.serve, listen))
        opened = await_store(database, waiting.explain, migrations=migrations_in(SCHEMA), clock=clock)
        store = await stack.enter_async_context(opened)
        # The port is free for the answers of the leader.
        await waiting.end()
        log.info("leads", epoch=store.epoch, port=address.port)
        yield Leadership(store, address)


class StandbyServer:
    """Answers while another controller leads: alive, not ready, and each call is to be tried again."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._why = "It looks for the leader."
        self._over = anyio.Event()
        self._ended = anyio.Event()

    def explain(self, why: Error) -> None:
        """Records the reason for which it waits."""
        if why.sentence != self._why:
            self._why = why.sentence
            log.info("stands by", why=why.sentence)

    async def serve(self, listen: ListenAddress, *, task_status: TaskStatus[ListenAddress]) -> None:
        async with serve(self.app(), listen.host, listen.port, tls=listen.tls, grace=_GRACE) as server:
            task_status.started(replace(listen, port=server.port))
            await self._over.wait()
        self._ended.set()

    async def end(self) -> None:
        """Returns when the port is free."""
        self._over.set()
        await self._ended.wait()

    def app(self) -> AsgiApp:
        everybody = frozenset({ANYONE})
        routes = [
            Route("GET", "/health", self._health, everybody),
            Route("GET", "/ready", self._ready, everybody),
            Route("GET", "/metrics", _metrics, everybody),
        ]
        app = AsgiApp(_services(), routes, ids=self._ids, authenticator=_Unknown(), limits=_LIMITS)
        app.check_leader = self._refuse
        return app

    async def _health(self, request: RouteRequest) -> RouteResponse:
        del request
        return RouteResponse(f"stands by: {self._why}\n".encode())

    async def _ready(self, request: RouteRequest) -> RouteResponse:
        del request
        self._refuse()
        raise AssertionError("a standby is never ready")

    def _refuse(self) -> None:
        raise Retry(
            "iris.standby",
            f"This controller stands by. {self._why}",
            hint="Ask the controller that leads.",
            after=_ASK_AGAIN,
        )


class _Unknown:
    """Only the leader knows callers. A standby refuses each call before it looks at the caller."""

    async def authenticate(self, token: str) -> Principal | None:
        del token
        return None


async def _metrics(request: RouteRequest) -> RouteResponse:
    del request
    metrics = Metrics()
    leader_gauge(metrics, leads=False)
    return RouteResponse(metrics.exposition(), content_type=CONTENT_TYPE)


def leader_gauge(metrics: Metrics, *, leads: bool) -> None:
    """Says whether this controller leads."""
    metrics.gauge("neorion_iris_leader", "1 of the controller that leads, 0 of a standby.").set(int(leads))


class _NoJobs(JobService):
    """Only for its table of methods, as the others."""


class _NoCluster(ClusterService):
    """See above."""


class _NoWorkers(WorkerService):
    """See above."""


def _services() -> list[RpcService]:
    jobs, cluster, workers = _NoJobs(), _NoCluster(), _NoWorkers()
    return [
        RpcService(JobServiceASGIApplication, jobs, _methods(jobs)),
        RpcService(ClusterServiceASGIApplication, cluster, _methods(cluster)),
        RpcService(WorkerServiceASGIApplication, workers, _methods(workers)),
    ]


def _methods(service: JobService | ClusterService | WorkerService) -> dict[str, set[str]]:
    return {method.name: {KNOWN} for method in service.desc().methods}
