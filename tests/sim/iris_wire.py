"""HTTP between simulated hosts: the controller's application behind byte streams that break as TCP connections do."""

import struct
from collections.abc import AsyncIterator, MutableMapping
from contextlib import suppress
from itertools import count
from typing import Any, cast
from urllib.parse import urlsplit
from weakref import ref

import anyio
import msgspec
import pyqwest
from anyio.streams.buffered import BufferedByteReceiveStream

from neorion.keel.base import Retry
from neorion.keel.rpc import App
from neorion.keel.sim import Network, Stream

ADDRESS = "controller:http"
_LENGTH = struct.Struct(">I")
_BROKEN = (anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError)


class _Frames:
    """Messages over a byte stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._inward = BufferedByteReceiveStream(stream)

    async def send(self, message: object) -> None:
        body = msgspec.msgpack.encode(message)
        await self._stream.send(_LENGTH.pack(len(body)) + body)

    async def receive(self) -> Any:
        (size,) = _LENGTH.unpack(await self._inward.receive_exactly(_LENGTH.size))
        return msgspec.msgpack.decode(await self._inward.receive_exactly(size))


class Wire:
    """The connections of one world under way.

    The client's library holds its transport and its answers' bodies out of the collector's sight. So those hold nothing
    of the world: it would outlive its run.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self._connections: dict[int, tuple[Stream, _Frames]] = {}
        self._numbers = count(1)

    def transport(self) -> "StreamTransport":
        return StreamTransport(ref(self))

    def keep(self, stream: Stream, frames: _Frames) -> int:
        number = next(self._numbers)
        self._connections[number] = stream, frames
        return number

    def frames(self, number: int) -> _Frames:
        return self._connections[number][1]

    async def close(self, number: int) -> None:
        stream, _ = self._connections.pop(number)
        await stream.aclose()


class StreamTransport:
    """What a client calls through: one connection for each request."""

    def __init__(self, wire: "ref[Wire]") -> None:
        self._wire = wire

    async def execute(self, request: pyqwest.Request) -> pyqwest.Response:
        wire = _alive(self._wire)
        content = request.content
        body = content if isinstance(content, bytes) else b"".join([chunk async for chunk in content])
        try:
            stream = await wire.network.connect(ADDRESS)
        except Retry as error:
            raise ConnectionError(str(error)) from error
        frames = _Frames(stream)
        try:
            headers = [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]
            await frames.send((request.method, urlsplit(request.url).path, headers, body))
            status, found = await frames.receive()
        except _BROKEN:
            await stream.aclose()
            raise pyqwest.ReadError("the connection broke") from None
        except BaseException:
            await stream.aclose()
            raise
        answer = [(bytes(name).decode(), bytes(value).decode()) for name, value in found]
        content = _Body(self._wire, wire.keep(stream, frames))
        return pyqwest.Response(status=status, headers=pyqwest.Headers(answer), content=content)


class _Body(AsyncIterator[bytes]):
    def __init__(self, wire: "ref[Wire]", number: int) -> None:
        self._wire = wire
        self._number = number
        self._more = True
        self._closed = False

    async def __anext__(self) -> bytes:
        while self._more:
            try:
                body, self._more = await _alive(self._wire).frames(self._number).receive()
            except _BROKEN:
                raise pyqwest.ReadError("the connection broke") from None
            if body:
                return body
        raise StopAsyncIteration

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            await _alive(self._wire).close(self._number)


def _alive(wire: "ref[Wire]") -> Wire:
    found = wire()
    assert found is not None, "a world ended before its clients"
    return found


async def attend(app: App, stream: Stream) -> None:
    """Serves one connection of the application, as an HTTP server does."""
    frames = _Frames(stream)
    try:
        method, path, headers, body = await frames.receive()
    except _BROKEN:
        return
    unread: list[bytes] = [body]

    async def receive() -> dict[str, Any]:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        with suppress(*_BROKEN):
            await frames.receive()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        try:
            if message["type"] == "http.response.start":
                await frames.send((message["status"], message["headers"]))
            else:
                await frames.send((message.get("body", b""), message.get("more_body", False)))
        except _BROKEN:
            # A server does not learn from its writes that the client is gone; `receive` tells it.
            return

    length = (b"content-length", b"%d" % len(body))
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [*((bytes(name), bytes(value)) for name, value in headers), length],
        "client": None,
        "server": None,
        "extensions": {},
    }
    await app(scope, receive, send)


# The first client loads the rest of its library, which asks the machine for chance: before any simulation, not in one.
pyqwest.Client(Wire(cast("Network", None)).transport())
