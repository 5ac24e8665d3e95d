"""A transport without sockets: requests reach an application in the same loop.

No threads, no clock and no chance of its own, so that a simulated run repeats.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from types import TracebackType
from typing import Final, Self
from urllib.parse import unquote, urlsplit

import anyio
import pyqwest
from anyio.abc import TaskGroup

from neorion.keel.rpc.asgi import Application, Message, Scope

# Messages a server may be ahead of its reader, as a socket's buffer would allow.
_AHEAD: Final = 16


class MemoryTransport:
    """Calls `app` for each request, in a task that lives no longer than the transport."""

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

    async def execute(self, request: pyqwest.Request) -> pyqwest.Response:
        content = request.content
        body = content if isinstance(content, bytes) else b"".join([chunk async for chunk in content])
        pipe = _Pipe(body)
        self._tasks.start_soon(self._run, _scope(request, len(body)), pipe)
        try:
            start = await pipe.next_message()
        except BaseException:
            await pipe.aclose()
            raise
        headers = [(name.decode(), value.decode()) for name, value in start["headers"]]
        return pyqwest.Response(status=start["status"], headers=pyqwest.Headers(headers), content=pipe)

    async def _run(self, scope: Scope, pipe: "_Pipe") -> None:
        try:
            await self._app(scope, pipe.receive, pipe.send)
        finally:
            pipe.end()


class _Pipe(AsyncIterator[bytes]):
    """Both ends of one exchange: ASGI to the application, an iterator of bytes to the client."""

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
        # A server does not learn from its writes that the client is gone; `receive` tells it.
        with suppress(anyio.BrokenResourceError):
            await self._out.send(message)

    def end(self) -> None:
        self._out.close()

    async def next_message(self) -> Message:
        try:
            return await self._in.receive()
        except anyio.EndOfStream:
            raise pyqwest.ReadError("the server ended the connection") from None

    async def __anext__(self) -> bytes:
        while not self._complete:
            message = await self.next_message()
            self._complete = not message.get("more_body", False)
            if body := message.get("body", b""):
                return body
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self._gone.set()
        self._in.close()


def _scope(request: pyqwest.Request, length: int) -> Scope:
    url = urlsplit(request.url)
    headers = [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": url.scheme,
        "path": unquote(url.path) or "/",
        "raw_path": url.path.encode(),
        "query_string": url.query.encode(),
        "root_path": "",
        "headers": [*headers, (b"host", url.netloc.encode()), (b"content-length", b"%d" % length)],
        "client": None,
        "server": None,
        "extensions": {},
    }
