"""A channel of a client to a port of a server."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import cast

import anyio
import asyncssh
from anyio.abc import ByteStream

from neorion.devservers.bastion.upstream import PIECE
from neorion.keel.base import Deadline, Error, Retry
from neorion.keel.run import create_owned_task, only_error
from neorion.keel.telemetry import logger

log = logger(__name__)


class Forward:
    """Opened first, so that a client hears why it could not be; then carried until both sides are done.

    The connection lives in a task of its own: the one that opens it is over when the channel begins.
    """

    def __init__(self, connection: AbstractAsyncContextManager[ByteStream], server: str) -> None:
        self.sent = 0
        self.received = 0
        self._connection = connection
        self._server = server
        self._ends: asyncio.Future[tuple[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]]] = (
            asyncio.get_running_loop().create_future()
        )
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Raises an `Error` when the server cannot be connected to."""
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = create_owned_task(self._run(opened), f"forward to {self._server}")
        await opened

    async def carry(self, reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes]) -> None:
        if self._task is None:
            return
        self._ends.set_result((reader, writer))
        try:
            await self._task
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        finally:
            writer.close()

    async def _run(self, opened: asyncio.Future[None]) -> None:
        try:
            async with self._connection as stream:
                opened.set_result(None)
                reader, writer = await self._ends
                await self._carry(stream, reader, writer)
        except Exception as error:  # noqa: BLE001 -- whatever it was, the client must not wait for ever
            if not opened.done():
                opened.set_exception(_explained(self._server, error))
            else:
                log.info("forward broke", server=self._server, error=str(error))

    async def _carry(
        self, stream: ByteStream, reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes]
    ) -> None:
        """Both ways, until the server is done. A client that is done first still gets the rest of the answer."""

        async def up() -> None:
            while data := await reader.read(PIECE):
                self.sent += len(data)
                await stream.send(data)
            await stream.send_eof()

        async with anyio.create_task_group() as group:
            group.start_soon(up)
            async for data in stream:
                self.received += len(data)
                writer.write(data)
                await writer.drain()
            writer.write_eof()
            group.cancel_scope.cancel()


def _explained(server: str, error: BaseException) -> Error:
    found = (
        only_error(cast("BaseExceptionGroup[BaseException]", error))
        if isinstance(error, BaseExceptionGroup)
        else error
    )
    if isinstance(found, Error):
        return found
    if isinstance(found, TimeoutError):
        return Deadline("devservers.no_answer", f"{server} did not answer.")
    return Retry("devservers.no_connection", f"{server} cannot be reached: {found}.")
