"""Lets asyncssh speak over a stream of bytes that is not a socket, such as a port forwarded by the API server."""

import asyncio
from collections.abc import Callable

import anyio
import asyncssh
from anyio.abc import ByteStream


class Tunnel(asyncio.Transport):
    """A tunnel for `asyncssh.connect(tunnel=...)`. `carry` has to run for as long as the connection lives.

    What is written waits here until the stream takes it: no more than the windows of the SSH channels allow.
    """

    def __init__(self, stream: ByteStream, name: str) -> None:
        super().__init__({"peername": (name, 0)})
        self._stream = stream
        self._written: asyncio.Queue[bytes] = asyncio.Queue()
        self._connection: asyncio.Future[asyncssh.SSHClientConnection] = (
            asyncio.get_running_loop().create_future()
        )
        self._closing = False

    async def create_connection(
        self, factory: Callable[[], asyncssh.SSHClientConnection], host: str, port: int
    ) -> tuple["Tunnel", asyncssh.SSHClientConnection]:
        """Opens a connection in the form that asyncssh expects of tunnels."""
        del host, port
        connection = factory()
        connection.connection_made(self)
        self._connection.set_result(connection)
        return self, connection

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._written.put_nowait(bytes(data))

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._closing = True
        self._written.put_nowait(b"")

    def abort(self) -> None:
        self.close()

    async def wait_closed(self) -> None:
        """It is closed when `carry` is over."""

    async def carry(self) -> None:
        """Until either side is done. Servers send first, so nothing is read before the connection exists."""
        connection = await self._connection
        async with anyio.create_task_group() as group:
            group.start_soon(self._send)
            try:
                async for data in self._stream:
                    connection.data_received(data)
            finally:
                connection.connection_lost(None)
            group.cancel_scope.cancel()

    async def _send(self) -> None:
        while data := await self._written.get():
            await self._stream.send(data)
        await self._stream.send_eof()
