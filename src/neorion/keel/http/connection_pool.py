"""A pool of connections that are reused between requests, and the responses on them."""

import asyncio
import ssl
from collections import deque
from types import TracebackType
from typing import Self

from neorion.keel.clock import Clock
from neorion.keel.http.bounded_stream import BoundedStream
from neorion.keel.http.dialer import Dialer
from neorion.keel.http.message import Headers, ProtocolError, ResponseHead, ResponseParser, write_head

# One for each request in flight and each open watch; further requests wait until one is free.
CONNECTIONS_MAX = 128
# Below the timeout of a request, so that a caller gets `PoolExhausted` and not a timeout of a server that it never
# reached.
SLOT_S_MAX = 60.0
# Longer than the pauses of a controller, shorter than the idle timeouts of servers and load balancers.
IDLE_S_MAX = 60.0
# A page of a list of large objects is a tenth of it. Watches, logs and commands are read in parts.
BODY_BYTES_MAX = 128 * 2**20
# An error is a small object; an error page of a proxy is not much larger.
ERROR_BYTES_MAX = 2**20


class PoolExhausted(Exception):
    """No connection became free in time. Nothing was sent."""


class Connection:
    """A connection to the server, its parser and TLS context, and the time since which it is idle."""

    def __init__(self, link: BoundedStream, tls: ssl.SSLContext | None) -> None:
        self.link = link
        self.reading = ResponseParser()
        self.tls = tls
        self.rests_since: float | None = None

    async def ask(self, request: bytes, *, may_be_silent: bool) -> ResponseHead | None:
        """Sends a request and returns the head of the response.

        None if `may_be_silent` and the connection ended without one.
        """
        try:
            self.link.write(request)
            return await self.link.head(self.reading)
        except OSError:
            if may_be_silent:
                return None
            raise


class PooledResponse:
    """A response: its head, and its body as it arrives. Leaving its block returns the connection."""

    def __init__(self, connection: Connection, head: ResponseHead, home: "ConnectionPool") -> None:
        self.head = head
        self.connection = connection
        self._reading = connection.reading
        self._home: ConnectionPool | None = home

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    async def next_part(self) -> bytes:
        """Returns the next part of the body; empty after the last."""
        while not (part := self._reading.take()) and not self._reading.done:
            if data := await self.connection.link.some():
                self._reading.feed(data)
            elif not self._reading.end():
                raise ConnectionResetError("the connection ended in the middle of an answer")
        return part

    async def read(self) -> bytes:
        """Reads the rest of the body and returns the connection."""
        most = BODY_BYTES_MAX if self.head.status < 400 else ERROR_BYTES_MAX
        size = 0
        try:
            parts: list[bytes] = []
            while part := await self.next_part():
                parts.append(part)
                size += len(part)
                if size > most:
                    raise ProtocolError(f"an answer of {self.head.status} has more than {most} bytes")
            return b"".join(parts)
        finally:
            self.release()

    def release(self) -> None:
        """Returns the connection to the pool, if the response was read completely."""
        if self._home is not None:
            self._home.take_back(self.connection, good=self._reading.done and self.head.stays)
            self._home = None


class ConnectionPool:
    """All connections to one server."""

    def __init__(
        self, dialer: Dialer, clock: Clock, most: int | None = None, idle_s: float = IDLE_S_MAX
    ) -> None:
        self._dialer = dialer
        self._clock = clock
        self._idle_s = idle_s
        self._most = most or CONNECTIONS_MAX
        self._slots = asyncio.Semaphore(self._most)
        # In the order in which they became idle.
        self._resting: deque[Connection] = deque()
        self._open: set[BoundedStream] = set()

    def written(self, method: str, path: str, headers: Headers, body: bytes) -> bytes:
        # Methods that may have a body send a length of zero for an empty one.
        length = [("Content-Length", str(len(body)))] if body or method != "GET" else []
        dialer = self._dialer
        return write_head(method, dialer.prefix + path, [*dialer.headers, *headers, *length]) + body

    async def ask(self, request: bytes, tls: ssl.SSLContext | None, *, repeatable: bool) -> PooledResponse:
        """Sends a request that was written by `written`, and returns the response.

        An idle connection may have ended, which shows only after the next request was sent. A `repeatable` request is
        then sent again over another connection.
        """
        await self._acquire_slot()
        connection: Connection | None = None
        try:
            while True:
                connection = self._rested(tls) or await self._dialled(tls)
                again = connection.rests_since is not None and repeatable
                head = await connection.ask(request, may_be_silent=again)
                if head is not None:
                    return PooledResponse(connection, head, self)
                connection.link.close()
        except BaseException:
            if connection is not None:
                connection.link.close()
            self._slots.release()
            raise

    async def _acquire_slot(self) -> None:
        if not self._slots.locked():
            # The usual case, without the cost of a timer.
            await self._slots.acquire()
            return
        try:
            async with asyncio.timeout(SLOT_S_MAX):
                await self._slots.acquire()
        except TimeoutError:
            raise PoolExhausted(f"{self._most}") from None

    def take_back(self, connection: Connection, *, good: bool) -> None:
        self._slots.release()
        if good and connection.link.rests:
            connection.rests_since = self._clock.monotonic()
            self._resting.append(connection)
        elif connection.link.stands:
            connection.link.close()

    async def aclose(self) -> None:
        links = [*self._open]
        for link in links:
            if link.stands:
                link.close()
        for link in links:
            await link.gone()

    def _rested(self, tls: ssl.SSLContext | None) -> Connection | None:
        """An idle connection that can be reused: the one used last, so that surplus connections expire."""
        oldest = self._clock.monotonic() - self._idle_s
        while self._resting and (self._resting[0].rests_since or 0) < oldest:
            self._resting.popleft().link.close()
        while self._resting:
            connection = self._resting.pop()
            if connection.link.rests and not connection.link.has_unread_bytes and connection.tls is tls:
                return connection
            connection.link.close()
        return None

    async def _dialled(self, tls: ssl.SSLContext | None) -> Connection:
        link = await self._dialer.dial(tls)
        self._open.add(link)
        link.when_closed(self._open.discard)
        return Connection(link, tls)
