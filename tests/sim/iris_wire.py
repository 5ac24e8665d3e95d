"""HTTP between simulated hosts: the controller's application behind byte streams that break as TCP connections do."""

import struct
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any

import anyio
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from neorion.keel.base import Retry
from neorion.keel.http.client import Request
from neorion.keel.http.dialer import DialError
from neorion.keel.http.message import ResponseHead
from neorion.keel.rpc import AsgiApp
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


class StreamTransport:
    """What a client calls through: one connection for each request."""

    def __init__(self, network: Network) -> None:
        self._network = network

    async def send(self, request: Request) -> "_Response":
        try:
            stream = await self._network.connect(ADDRESS)
        except Retry as error:
            raise DialError(str(error)) from error
        frames = _Frames(stream)
        try:
            headers = [(name.lower().encode(), value.encode()) for name, value in request.headers]
            await frames.send((request.method, request.path, headers, request.body))
            status, found = await frames.receive()
        except _BROKEN:
            stream.close()
            raise ConnectionResetError("the connection broke") from None
        except BaseException:
            stream.close()
            raise
        answer = {bytes(name).decode(): bytes(value).decode() for name, value in found}
        return _Response(ResponseHead(status, "", answer, stays=False), stream, frames)


class _Response:
    def __init__(self, head: ResponseHead, stream: Stream, frames: _Frames) -> None:
        self.head = head
        self._stream = stream
        self._frames = frames
        self._more = True
        self._closed = False

    async def next_part(self) -> bytes:
        while self._more:
            try:
                body, self._more = await self._frames.receive()
            except _BROKEN:
                raise ConnectionResetError("the connection broke") from None
            if body:
                return body
        return b""

    def release(self) -> None:
        if not self._closed:
            self._closed = True
            self._stream.close()


async def attend(app: AsgiApp, stream: Stream) -> None:
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
