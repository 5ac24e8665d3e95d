"""Port forwarding to pods through the API server: one connection as a byte stream, or a local listener for many."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
from anyio.abc import ByteStream, SocketAttribute

from neorion.keel.base import Deadline, Error, Retry
from neorion.keel.kube.client.api import Client
from neorion.keel.kube.core import POD
from neorion.keel.kube.streams.messages import Messages, open_messages
from neorion.keel.kube.streams.spdy import (
    Data,
    Frame,
    GoAway,
    Ping,
    Reset,
    SpdyReader,
    Writer,
    data_frame,
    pong,
)
from neorion.keel.run import only_error
from neorion.keel.telemetry import logger

log = logger(__name__)

PROTOCOL = "SPDY/3.1+portforward.k8s.io"
# Streams of the side that opened the connection have odd numbers.
_ERROR, _DATA = 1, 3
# The most bytes read and sent at once.
CHUNK_MAX = 64 * 1024
# The limit for one listener; further connections wait. Half of the client's limit, because the client has other users.
CONNECTIONS_MAX = 64


class PortStream(ByteStream):
    """A connection to a port of a pod. Either side may end first, as with TCP."""

    def __init__(self, messages: Messages, port: int) -> None:
        self._messages = messages
        self._port = port
        self._reader = SpdyReader()
        self._ready = bytearray()
        self._open = {_ERROR, _DATA}

    async def greet(self) -> None:
        """Opens the two streams of a port: one for errors, whose sending side is closed, and one for data."""
        writer, common = Writer(), {"port": str(self._port), "requestid": "0"}
        await self._messages.send(
            writer.open(_ERROR, {"streamtype": "error", **common})
            + data_frame(_ERROR, b"", last=True)
            + writer.open(_DATA, {"streamtype": "data", **common})
        )

    async def receive(self, max_bytes: int = CHUNK_MAX) -> bytes:
        # The data may end before the error that explains it, so both streams must end.
        while not self._ready and self._open:
            message = await self._messages.receive()
            if message is None:
                raise _lost(self._port)
            for frame in self._reader.feed(message):
                await self._take(frame)
        if not self._ready:
            raise anyio.EndOfStream
        chunk = bytes(self._ready[:max_bytes])
        del self._ready[:max_bytes]
        return chunk

    async def _take(self, frame: Frame) -> None:
        match frame:
            case Data():
                self._take_data(frame)
            case Ping():
                await self._messages.send(pong(frame))
            case Reset() if frame.stream not in {_ERROR, _DATA}:
                pass
            case Reset() | GoAway():
                raise _lost(self._port)

    def _take_data(self, frame: Data) -> None:
        if frame.stream not in self._open:
            # Data of a stream that was never opened or has ended does not belong to this port.
            return
        if frame.stream == _ERROR and frame.data:
            raise Retry(
                "kube.port",
                f"Port {self._port} of the pod: {frame.data.decode(errors='replace').strip()}",
                hint="Check that something listens there.",
            )
        self._ready += frame.data
        if frame.last:
            self._open.discard(frame.stream)

    async def send(self, item: bytes) -> None:
        for start in range(0, len(item), CHUNK_MAX):
            await self._messages.send(data_frame(_DATA, item[start : start + CHUNK_MAX]))

    async def send_eof(self) -> None:
        await self._messages.send(data_frame(_DATA, b"", last=True))

    async def aclose(self) -> None:
        """Does nothing: the connection ends with the block that opened it."""


@dataclass(frozen=True, slots=True)
class PodPort:
    """A port of a pod."""

    pod: str
    namespace: str
    port: int


def log_broken(target: PodPort, why: str) -> None:
    """Logs a broken connection; the default of `forward`."""
    log.warning("forwarded connection broke", pod=target.pod, port=target.port, why=why)


@asynccontextmanager
async def open_port(client: Client, target: PodPort) -> AsyncGenerator[PortStream]:
    """Opens one connection as a stream of bytes."""
    path = POD.path(target.namespace, target.pod, "portforward")
    async with open_messages(client.transport, path, (), PROTOCOL) as messages:
        stream = PortStream(messages, target.port)
        await stream.greet()
        yield stream


@asynccontextmanager
async def forward(
    client: Client,
    target: PodPort,
    host: str = "127.0.0.1",
    port: int = 0,
    tell: Callable[[PodPort, str], None] = log_broken,
) -> AsyncGenerator[int]:
    """Listens locally while the block lasts, and connects each client to the pod's port. Yields the local port.

    `tell` is called with the reason when a connection breaks, because the local client does not get it.
    """
    free = anyio.Semaphore(CONNECTIONS_MAX)

    async def serve(local: ByteStream) -> None:
        async with free, local:
            try:
                async with open_port(client, target) as remote:
                    await _carry(local, remote)
            except* (Error, OSError, anyio.BrokenResourceError) as broken:
                error = only_error(broken)
                tell(target, error.sentence if isinstance(error, Error) else str(error))

    listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        yield listener.extra(SocketAttribute.local_port)  # noqa: S610 -- anyio's, no SQL
        group.cancel_scope.cancel()


async def _carry(local: ByteStream, remote: PortStream) -> None:
    """Copies both ways until the pod has ended. A client that ends first still gets the rest of the response."""

    async def upward() -> None:
        async for chunk in local:
            await remote.send(chunk)
        await remote.send_eof()

    async with anyio.create_task_group() as group:
        group.start_soon(upward)
        async for chunk in remote:
            await local.send(chunk)
        group.cancel_scope.cancel()


def _lost(port: int) -> Deadline:
    return Deadline(
        "kube.port_lost",
        f"The connection to port {port} of the pod broke.",
        hint="Open it again, if the pod still runs.",
    )
