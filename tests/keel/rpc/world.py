"""One echo service, reached over a real socket or in memory, and the world it can be asked about."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from connectrpc.request import RequestContext

from neorion.keel.base import Error
from neorion.keel.clock import SystemIds
from neorion.keel.rpc import (
    ANYONE,
    KNOWN,
    AsgiApp,
    Channel,
    MemoryTransport,
    Principal,
    RequestLimits,
    Route,
    RouteRequest,
    RouteResponse,
    RpcService,
    TokenAuthenticator,
    caller,
    connect,
    serve,
)
from neorion.keel.telemetry import current
from tests.keel.rpc.gen.echo_client import EchoClient
from tests.keel.rpc.gen.echo_connect import Echo, EchoASGIApplication
from tests.keel.rpc.gen.echo_pb import Ping, Pong

Context = RequestContext[Ping, Pong]
TOKEN = "canary-6f1d-token"
ALLOW = {
    "Say": {KNOWN},
    "Look": {ANYONE},
    "Wait": {"worker"},
    "Watch": {"worker"},
    "Fail": {KNOWN},
    "FailLate": {KNOWN},
}


class EchoService(Echo):
    """Does what the tests ask, and tells them what happened to it."""

    def __init__(self) -> None:
        self.error: Exception = RuntimeError("no error chosen")
        self.go = anyio.Event()
        self.begun = anyio.Event()
        self.cancelled = anyio.Event()
        self.seen: list[tuple[str, str]] = []
        self.headers: dict[str, str] = {}
        self.say_in_headers = False
        self.done = 0

    async def say(self, request: Ping, ctx: Context, /) -> Pong:
        self.headers = dict(ctx.request_headers)
        self.seen.append((caller().name, current()))
        self.done += 1
        if self.say_in_headers:
            ctx.response_headers["x-said"] = request.text
            ctx.response_trailers["x-said-last"] = request.text
        return Pong(text=request.text, count=request.count)

    async def look(self, request: Ping, _ctx: Context, /) -> Pong:
        return Pong(text=request.text, count=request.count)

    async def wait(self, request: Ping, _ctx: Context, /) -> Pong:
        await self._held()
        self.done += 1
        return Pong(text=request.text)

    async def watch(self, request: Ping, _ctx: Context, /) -> AsyncIterator[Pong]:
        for number in range(request.count):
            yield Pong(count=number)
        if request.count == 0:
            yield Pong(text="first")
            await self._held()
            yield Pong(text="last")

    async def fail(self, _request: Ping, _ctx: Context, /) -> Pong:
        raise self.error

    async def fail_late(self, _request: Ping, _ctx: Context, /) -> AsyncIterator[Pong]:
        yield Pong(text="one")
        raise self.error

    async def _held(self) -> None:
        self.begun.set()
        try:
            await self.go.wait()
        except BaseException:
            self.cancelled.set()
            raise


async def health(request: RouteRequest) -> RouteResponse:
    return RouteResponse(f"ok {request.query.get('who', '')}\n".encode())


async def broken(request: RouteRequest) -> RouteResponse:
    raise (Error if request.query else RuntimeError)("canary-inside", "canary-inside")


@dataclass
class World:
    """A running application and the ways to it."""

    echo: EchoService
    app: AsgiApp
    channel: Channel
    open_channel: Callable[..., Channel]
    address: str = "http://memory"
    port: int = 0

    @property
    def client(self) -> EchoClient:
        return self.channel.client(EchoClient)

    def client_with(self, token: str | None) -> EchoClient:
        return self.open_channel(token=token).client(EchoClient)


OpenWorld = Callable[..., AbstractAsyncContextManager[World]]


def make_app(limits: RequestLimits | None = None) -> tuple[EchoService, AsgiApp]:
    echo = EchoService()
    people = {
        TOKEN: Principal("worker-1", frozenset({"worker"})),
        "reader": Principal("reader-1", frozenset({"reader"})),
    }
    anyone = frozenset({ANYONE})
    app = AsgiApp(
        [RpcService(EchoASGIApplication, echo, ALLOW)],
        [
            Route("GET", "/health", health, anyone),
            Route("GET", "/broken", broken, anyone),
            Route("GET", "/private", health, frozenset({"worker"})),
        ],
        ids=SystemIds(),
        authenticator=TokenAuthenticator(people),
        limits=limits,
    )
    return echo, app


@asynccontextmanager
async def over_socket(limits: RequestLimits | None = None, **serving: Any) -> AsyncGenerator[World]:
    echo, app = make_app(limits)
    async with serve(app, **serving) as server, AsyncExitStack() as opened:

        def channel(token: str | None = TOKEN) -> Channel:
            made = connect(server.address, ids=SystemIds(), token=token)
            opened.push_async_exit(made)
            return made

        async with channel() as main:
            yield World(echo, app, main, channel, server.address, server.port)


@asynccontextmanager
async def in_memory(limits: RequestLimits | None = None) -> AsyncGenerator[World]:
    echo, app = make_app(limits)
    async with MemoryTransport(app) as transport:

        def channel(token: str | None = TOKEN) -> Channel:
            return connect("memory", ids=SystemIds(), token=token, transport=transport)

        yield World(echo, app, channel(), channel)
