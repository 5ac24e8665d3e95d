"""Leader election: the replica that owns the store leads. The others refuse requests, and take over when it is free.

The store's own lease is the election, so that no other authority can disagree with it. A replica that lost the lease cannot
write, and no effect starts before its record is written.
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskStatus

from neorion.keel.base import Conflict, Duration, Retry
from neorion.keel.clock import Clock, Ids
from neorion.keel.rpc import (
    ANYONE,
    AsgiApp,
    Principal,
    Route,
    RouteRequest,
    RouteResponse,
    RpcService,
    ServerTls,
    serve,
)
from neorion.keel.run import Supervisor
from neorion.keel.store import Store, open_store
from neorion.keel.telemetry import logger
from neorion.keel.telemetry.metrics import CONTENT_TYPE
from neorion.navarch.app.control_plane import MIGRATIONS
from neorion.navarch.model.gen.navarch_connect import (
    AgentService,
    AgentServiceASGIApplication,
    FleetService,
    FleetServiceASGIApplication,
)

log = logger(__name__)

# Between two attempts to open a store that another replica owns. PostgreSQL itself waits until the owner's lease ends.
_TRY_EVERY: Final = Duration.of(seconds=1)
_ASK_AGAIN: Final = Duration.of(seconds=1)
_GRACE: Final = Duration.of(ms=200)


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where the replica answers, whether it leads or waits."""

    host: str
    port: int
    tls: ServerTls | None = None


@dataclass(frozen=True, slots=True)
class Leadership:
    """The store is ours, and this is where we answer."""

    store: Store
    door: ListenAddress


@asynccontextmanager
async def acquire_leadership(
    where: str | Path, door: ListenAddress, clock: Clock, ids: Ids
) -> AsyncGenerator[Leadership]:
    """Returns when this process owns the store: at once, or after the one that does has ended."""
    async with AsyncExitStack() as stack:
        crew = await stack.enter_async_context(Supervisor())
        stack.callback(crew.cancel)
        waiting: _StandbyServer | None = None
        while True:
            try:
                store = await stack.enter_async_context(open_store(where, migrations=MIGRATIONS, clock=clock))
                break
            except Conflict as error:
                if error.code != "store.owned":
                    raise
                if waiting is None:
                    waiting = _StandbyServer(ids)
                    door = await crew.start("navarch.standby", partial(waiting.serve, door))
                    log.info("standing by", why=error.sentence, port=door.port)
            await clock.sleep(_TRY_EVERY)
        if waiting is not None:
            await waiting.end()
            log.info("takes over", port=door.port)
        yield Leadership(store, door)


class _StandbyServer:
    """Answers while another leads: alive, not ready, and every call is to be tried again."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._over = anyio.Event()
        self._left = anyio.Event()

    async def serve(self, door: ListenAddress, *, task_status: TaskStatus[ListenAddress]) -> None:
        async with serve(_standby(self._ids), door.host, door.port, tls=door.tls, grace=_GRACE) as server:
            task_status.started(replace(door, port=server.port))
            await self._over.wait()
        self._left.set()

    async def end(self) -> None:
        """Returns when the port is free for the leader's own answers."""
        self._over.set()
        await self._left.wait()


class _StandbyAuthenticator:
    """Refuses every caller: only the leader authenticates."""

    async def authenticate(self, token: str) -> Principal | None:
        del token
        raise _waits()


class _NoAgents(AgentService):
    """Only for its table of methods."""


class _NoOperators(FleetService):
    """Refuses every call, because the authenticator does."""


def _standby(ids: Ids) -> AsgiApp:
    async def live(request: RouteRequest) -> RouteResponse:
        del request
        return RouteResponse(b"ok\n")

    async def ready(request: RouteRequest) -> RouteResponse:
        del request
        raise _waits()

    async def metrics(request: RouteRequest) -> RouteResponse:
        del request
        return RouteResponse(_METRICS, content_type=CONTENT_TYPE)

    everybody = frozenset({ANYONE})
    routes = [
        Route("GET", path, handler, everybody)
        for path, handler in (("/healthz", live), ("/readyz", ready), ("/metrics", metrics))
    ]
    agents, operators = _NoAgents(), _NoOperators()
    services = [
        RpcService(
            AgentServiceASGIApplication, agents, {one.name: {"leader"} for one in agents.desc().methods}
        ),
        RpcService(
            FleetServiceASGIApplication, operators, {one.name: {"leader"} for one in operators.desc().methods}
        ),
    ]
    return AsgiApp(services, routes, ids=ids, authenticator=_StandbyAuthenticator())


_METRICS: Final = (
    b"# HELP navarch_leader Whether this replica leads.\n# TYPE navarch_leader gauge\nnavarch_leader 0.0\n"
)


def _waits() -> Retry:
    return Retry(
        "navarch.standby",
        "This replica waits for the leader to end.",
        hint="Send it to the leader: a Service leads to replicas that are ready.",
        after=_ASK_AGAIN,
    )
