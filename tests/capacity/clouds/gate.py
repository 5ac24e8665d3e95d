"""The door of a cloud on loopback: what comes in is recorded, may be refused, and its answer may get lost."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from aiohttp import web

from tests.doors import shut


@dataclass(frozen=True, slots=True)
class Call:
    """One request, read whole."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """What the cloud says."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


Handler = Callable[[Call], Awaitable[Answer]]


class Gate:
    """`refuse` may answer in the cloud's place; with `lose`, calls it names are carried out and their connections cut.

    What `hang` names is carried out and never answered at all.
    """

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.url = ""
        self.calls: list[Call] = []
        self.refuse: Callable[[Call], Answer | None] = lambda _: None
        self.lose: Callable[[Call], bool] = lambda _: False
        self.hang: Callable[[Call], bool] = lambda _: False

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        call = Call(request.method, request.path, request.query, request.headers, await request.read())
        self.calls.append(call)
        answer = self.refuse(call) or await self._handler(call)
        if self.hang(call):
            await anyio.sleep_forever()
        if self.lose(call) and request.transport is not None:
            request.transport.abort()
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)


@asynccontextmanager
async def opened(handler: Handler) -> AsyncGenerator[Gate]:
    gate = Gate(handler)
    runner = web.ServerRunner(web.Server(gate), shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        gate.url = f"http://{host}:{port}"
        yield gate
    finally:
        await shut(runner)
