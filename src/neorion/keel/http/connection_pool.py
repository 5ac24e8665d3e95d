"""Connections that are kept between requests, and the answers that come over them."""

import asyncio
import ssl
from collections import deque
from types import TracebackType
from typing import Self

from neorion.keel.clock import Clock
from neorion.keel.http.bounded_stream import BoundedStream
from neorion.keel.http.dialer import Dialer
from neorion.keel.http.message import Headers, ProtocolError, ResponseHead, ResponseParser, write_head

# One for each request in flight and each open watch; what is more waits until one is free.
CONNECTIONS_MAX = 128
# Less than a request may take: who waits in vain hears of the crowd here, and not of a server that was never asked.
PLACE_S_MAX = 60.0
# Longer than an idle moment of a controller, shorter than what the server and load balancers allow.
IDLE_S_MAX = 60.0
# A page of a list of large objects is a tenth of it. Watches, logs and commands are read piece by piece.
BODY_BYTES_MAX = 128 * 2**20
# A refusal is a small object; an error page of a proxy is not much larger.
ERROR_BYTES_MAX = 2**20


class PoolExhausted(Exception):
    """Nobody gave a connection back. Nothing was sent."""


class Connection:
    """A link to the server, what is read from it, the TLS it stands on, and since when it rests."""

    def __init__(self, link: BoundedStream, tls: ssl.SSLContext | None) -> None:
        self.link = link
        self.reading = ResponseParser()
        self.tls = tls
        self.rests_since: float | None = None

    async def ask(self, request: bytes, *, may_be_silent: bool) -> ResponseHead | None:
        """The head of the answer; none, if that may be, where the connection ends without one."""
        try:
            self.link.write(request)
            return await self.link.head(self.reading)
        except OSError:
            if may_be_silent:
                return None
            raise


class PooledResponse:
    """An answer: its head, and its body as it comes. Leaving its block gives the connection back."""

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

    async def piece(self) -> bytes:
        """The next part of the body; nothing after the last."""
        while not (piece := self._reading.take()) and not self._reading.done:
            if data := await self.connection.link.some():
                self._reading.feed(data)
            elif not self._reading.end():
                raise ConnectionResetError("the connection ended in the middle of an answer")
        return piece

    async def read(self) -> bytes:
        """The rest of the body, and the connection given back."""
        most = BODY_BYTES_MAX if self.head.status < 400 else ERROR_BYTES_MAX
        size = 0
        try:
            pieces: list[bytes] = []
            while piece := await self.piece():
                pieces.append(piece)
                size += len(piece)
                if size > most:
                    raise ProtocolError(f"an answer of {self.head.status} has more than {most} bytes")
            return b"".join(pieces)
        finally:
            self.release()

    def release(self) -> None:
        """Gives the connection back, for others to use if nothing of this answer is left in it."""
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
        self._places = asyncio.Semaphore(self._most)
        # In the order in which they came to rest.
        self._resting: deque[Connection] = deque()
        self._open: set[BoundedStream] = set()

    def written(self, method: str, path: str, headers: Headers, body: bytes) -> bytes:
        # The length of nothing is told where something could be.
        length = [("Content-Length", str(len(body)))] if body or method != "GET" else []
        dialer = self._dialer
        return write_head(method, dialer.prefix + path, [*dialer.headers, *headers, *length]) + body

    async def ask(self, request: bytes, tls: ssl.SSLContext | None, *, repeatable: bool) -> PooledResponse:
        """The answer to a request that was written by `written`.

        Connections end while they rest, which is seen when the next request is on its way: one that is `repeatable` then
        goes over another.
        """
        await self._take_place()
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
            self._places.release()
            raise

    async def _take_place(self) -> None:
        if not self._places.locked():
            # Almost always; a timer would cost more than the rest of it.
            await self._places.acquire()
            return
        try:
            async with asyncio.timeout(PLACE_S_MAX):
                await self._places.acquire()
        except TimeoutError:
            raise PoolExhausted(f"{self._most}") from None

    def take_back(self, connection: Connection, *, good: bool) -> None:
        self._places.release()
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
        """One that may be used again: that which rested least, so that in time the others go."""
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
