"""WebSocket messages as bytes. Nothing is buffered here: who does not read holds up the sender."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from neorion.keel.base import Deadline
from neorion.keel.kube.client.transport import Params, Transport


class Messages:
    """A WebSocket into the cluster."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse[bool]) -> None:
        self._socket = socket

    async def send(self, message: bytes) -> None:
        try:
            await self._socket.send_bytes(message)
        except ConnectionError as error:
            raise Deadline(
                "kube.stream_lost",
                "The stream into the pod broke.",
                hint="Open it again; what was on its way may or may not have arrived.",
            ) from error

    async def receive(self) -> bytes | None:
        """The next message, or nothing when the peer has closed or is gone."""
        message = await self._socket.receive()
        return message.data if message.type is aiohttp.WSMsgType.BINARY else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (message := await self.receive()) is not None:
            yield message


@asynccontextmanager
async def open_messages(
    transport: Transport, path: str, params: Params, protocol: str
) -> AsyncGenerator[Messages]:
    async with transport.websocket(path, params, protocol) as socket:
        yield Messages(socket)
