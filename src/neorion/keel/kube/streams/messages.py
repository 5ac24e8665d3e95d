"""Messages of bytes into the cluster and back. Nothing is buffered here: who does not read holds up the sender."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from neorion.keel.base import Deadline
from neorion.keel.kube.client.transport import KubeTransport, Params

if TYPE_CHECKING:
    from neorion.keel.kube.client.websocket import WebSocket


class Messages:
    """A WebSocket into the cluster."""

    def __init__(self, socket: "WebSocket") -> None:
        self._socket = socket

    async def send(self, message: bytes) -> None:
        try:
            await self._socket.send(message)
        except OSError as error:
            raise Deadline(
                "kube.stream_lost",
                "The stream into the pod broke.",
                hint="Open it again; what was on its way may or may not have arrived.",
            ) from error

    async def receive(self) -> bytes | None:
        """The next message, or nothing when the peer has closed or is gone."""
        try:
            return await self._socket.receive()
        except OSError:
            return None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (message := await self.receive()) is not None:
            yield message


@asynccontextmanager
async def open_messages(
    transport: KubeTransport, path: str, params: Params, protocol: str
) -> AsyncGenerator[Messages]:
    async with transport.websocket(path, params, protocol) as socket:
        yield Messages(socket)
