"""A connection as a stream of bytes in both directions, with a bounded read buffer."""

import asyncio
import select
import ssl
from collections.abc import Callable
from typing import cast

from neorion.keel.http.message import ResponseHead, ResponseParser

# Bytes received and not read yet; beyond this the peer has to wait.
_WAITING_MAX = 256 * 1024
# The time for a peer that does not read to receive the rest.
_LEAVING_S = 2.0


class BoundedStream(asyncio.Protocol):
    """One connection. One task reads; any task may write."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._came: list[bytes] = []
        self._waiting = 0
        self._paused = False
        self._ended = False
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._transport: asyncio.Transport | None = None

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None  # noqa: S101 -- a loop connects before it returns the protocol
        return self._transport

    @property
    def stands(self) -> bool:
        return not self._ended

    @property
    def rests(self) -> bool:
        """True if the connection is open and no unexpected bytes have arrived."""
        return not self._ended and not self._came

    @property
    def has_unread_bytes(self) -> bool:
        """True if the kernel holds bytes or an end that the loop has not read yet, as after a long pause of the loop."""
        waiting = select.poll()
        waiting.register(self.transport.get_extra_info("socket"), select.POLLIN)
        return bool(waiting.poll(0))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._came.append(data)
        self._waiting += len(data)
        if self._waiting > _WAITING_MAX and not self._paused:
            self._paused = True
            self.transport.pause_reading()
        _wake(self._reader)

    def eof_received(self) -> None:
        self._ended = True
        _wake(self._reader)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._error = exc
        _wake(self._reader)
        _wake(self._room)
        _wake(self._closed)

    def pause_writing(self) -> None:
        self._room = self._loop.create_future()

    def resume_writing(self) -> None:
        _wake(self._room)
        self._room = None

    async def some(self) -> bytes:
        """Returns the received bytes, waiting for the first; empty at the end of the stream."""
        while not self._came:
            if self._error is not None:
                raise ConnectionResetError("the connection broke") from self._error
            if self._ended:
                return b""
            self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        data = b"".join(self._came)
        self._came.clear()
        self._waiting = 0
        if self._paused and not self._ended:
            self._paused = False
            self.transport.resume_reading()
        return data

    async def head(self, reading: ResponseParser) -> ResponseHead:
        """Reads the head of the next response."""
        reading.expect()
        while reading.head is None:
            data = await self.some()
            if not data:
                raise ConnectionResetError("the connection ended before an answer began")
            reading.feed(data)
        return reading.head

    def write(self, data: bytes) -> None:
        if self._ended:
            raise ConnectionResetError("the connection has ended")
        self.transport.write(data)

    async def drain(self) -> None:
        """Waits until the write buffer has room."""
        while self._room is not None and not self._ended:
            await asyncio.shield(self._room)

    async def start_tls(self, context: ssl.SSLContext, name: str) -> None:
        """Switches the connection to TLS; `name` is the server name to verify."""
        made = await self._loop.start_tls(self.transport, self, context, server_hostname=name)
        if made is None:
            raise ConnectionResetError("the connection ended before TLS began")
        self._transport = made

    def close(self) -> None:
        """Closes at once; unsent bytes may be lost. Safe before the connection is made."""
        self._ended = True
        if self._transport is not None:
            self._transport.abort()

    def finish(self) -> None:
        """Closes after the write buffer has been sent."""
        self._ended = True
        self.transport.close()

    def when_closed(self, callback: Callable[["BoundedStream"], object]) -> None:
        self._closed.add_done_callback(lambda _: callback(self))

    async def gone(self) -> None:
        """Waits until the connection is closed. Aborts it if sending the rest takes too long."""
        try:
            async with asyncio.timeout(_LEAVING_S):
                await asyncio.shield(self._closed)
        except TimeoutError:
            self.close()
            await asyncio.shield(self._closed)


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
