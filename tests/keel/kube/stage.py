"""A server that answers as a test tells it to, and a clock that leaps over waits and remembers them."""

import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from anyio.lowlevel import checkpoint

from neorion.keel.base import Duration, Instant
from neorion.keel.clock import EPOCH, seeded_rng
from neorion.keel.kube.client import Client, ClusterConfig, connect
from tests.doors import shut

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class LeapClock:
    """Sleeping takes no time here, and all the time there."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._ns = 0

    def now(self) -> Instant:
        return EPOCH + Duration(self._ns)

    def monotonic(self) -> float:
        return self._ns / 1e9

    async def sleep(self, span: Duration) -> None:
        await checkpoint()
        self.slept.append(span.seconds)
        self.advance(span)

    def advance(self, span: Duration) -> None:
        self._ns += span.ns


@asynccontextmanager
async def serving(
    handler: Handler, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncGenerator[str]:
    """Every request goes to the one handler. Gives the address."""
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", handler)
    # Handlers may be in the middle of a stream when a test is done with them.
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, host, 0, ssl_context=tls)
    await site.start()
    try:
        port: int = runner.addresses[0][1]
        yield f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
    finally:
        await shut(runner)


@asynccontextmanager
async def client_of(cluster: ClusterConfig, clock: LeapClock) -> AsyncGenerator[Client]:
    async with connect(cluster, "test/1", clock, seeded_rng(7)) as client:
        yield client


@asynccontextmanager
async def staged(handler: Handler, clock: LeapClock | None = None) -> AsyncGenerator[Client]:
    """A client of a server with that one handler."""
    async with serving(handler) as server, client_of(ClusterConfig(server), clock or LeapClock()) as client:
        yield client


def status(code: int, reason: str = "", message: str = "", **details: object) -> web.Response:
    """The server's way to say no."""
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return web.json_response(body | {"details": details}, status=code)
