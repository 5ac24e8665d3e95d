"""A transport without sockets: requests reach an application in the same loop.

Uses no threads, no clock and no randomness, so that a simulated run repeats.
"""

from contextlib import suppress
from types import TracebackType
from typing import Final, Self
from urllib.parse import unquote

import anyio
from anyio.abc import TaskGroup

from neorion.keel.http.client import Request
from neorion.keel.http.message import ResponseHead
from neorion.keel.rpc.asgi import Application, Message, Scope

# The messages that a server may send ahead of its reader, like a socket's buffer.
_AHEAD: Final = 16


class MemoryTransport:
    """Calls `app` for each request, in a task that ends with the transport."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._tasks: TaskGroup = anyio.create_task_group()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._tasks.cancel_scope.cancel()
        return await self._tasks.__aexit__(kind, error, trace)

    async def send(self, request: Request) -> "_Pipe":
        pipe = _Pipe(request.body)
        self._tasks.start_soon(self._run, _scope(request), pipe)
        try:
            await pipe.begin()
        except BaseException:
            pipe.release()
            raise
        return pipe

    async def _run(self, scope: Scope, pipe: "_Pipe") -> None:
        try:
            await self._app(scope, pipe.receive, pipe.send)
        finally:
            pipe.end()


class _Pipe:
    """Both ends of one request: ASGI to the application, a response to the client."""

    head: ResponseHead

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self._gone = anyio.Event()
        self._out, self._in = anyio.create_memory_object_stream[Message](_AHEAD)
        self._complete = False

    async def receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        # A write does not reveal that the client is gone; `receive` does.
        with suppress(anyio.BrokenResourceError):
            await self._out.send(message)

    def end(self) -> None:
        self._out.close()

    async def begin(self) -> None:
        start = await self._next_message()
        headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        self.head = ResponseHead(start["status"], "", headers, stays=True)

    async def next_part(self) -> bytes:
        while not self._complete:
            message = await self._next_message()
            self._complete = not message.get("more_body", False)
            if body := message.get("body", b""):
                return body
        return b""

    def release(self) -> None:
        self._gone.set()
        self._in.close()

    async def _next_message(self) -> Message:
        try:
            return await self._in.receive()
        except anyio.EndOfStream:
            raise ConnectionResetError("the server ended the connection") from None


def _scope(request: Request) -> Scope:
    path, _, query = request.path.partition("?")
    headers = [(name.lower().encode(), value.encode()) for name, value in request.headers]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [*headers, (b"host", b"memory"), (b"content-length", b"%d" % len(request.body))],
        "client": None,
        "server": None,
        "extensions": {},
    }
