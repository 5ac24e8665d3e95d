"""Requests to one server over pooled connections, from any event loop."""

import asyncio
import ssl
from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from neorion.keel.clock import Clock, SystemClock
from neorion.keel.http.connection_pool import ConnectionPool, PooledResponse
from neorion.keel.http.dialer import Dialer, DialError
from neorion.keel.http.message import ProtocolError, ResponseHead

# Each stream and each long poll has a connection of its own, so a busy process may need thousands.
_CONNECTIONS_MAX: Final = 65_536
# Idle time of a connection: more than the half minute between two heartbeats, less than servers keep theirs,
# so that a request is not sent into a connection that is just being closed.
IDLE_S: Final = 40.0


class TooLarge(Exception):
    """The response is larger than the caller accepts."""


# All errors that a request can raise, a timeout of the caller included.
FAILURES: Final = (OSError, DialError, ProtocolError, TooLarge)


class Request(Struct, frozen=True):
    """One HTTP request; `path` is quoted and may end in a query."""

    method: str
    path: str
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""


class Response(Protocol):
    """The response to a request: its head, and its body in parts."""

    head: ResponseHead

    async def next_part(self) -> bytes:
        """Returns the next part of the body; empty at its end. Raises OSError if the connection breaks."""
        ...

    def release(self) -> None:
        """Releases the connection. An unread rest of the body is dropped, which the server notices."""
        ...


class Transport(Protocol):
    """Carries one HTTP request: over sockets, or in memory under a simulator.

    Raises DialError if nothing was sent, and OSError or ProtocolError if the request may have arrived.
    """

    async def send(self, request: Request) -> Response: ...


class HttpTransport:
    """Connections to one server. They belong to the event loop that opened them; each loop has its own."""

    def __init__(
        self, server: str, tls: ssl.SSLContext | None = None, proxy: str = "", clock: Clock | None = None
    ) -> None:
        self._dialer = Dialer(server, proxy)
        self._tls = tls
        self._clock = clock or SystemClock()
        self._pools: dict[asyncio.AbstractEventLoop, ConnectionPool] = {}

    async def send(self, request: Request) -> PooledResponse:
        pool = self._pool()
        written = pool.written(request.method, request.path, request.headers, request.body)
        return await pool.ask(written, self._tls, repeatable=request.method == "GET")

    async def aclose(self) -> None:
        """Closes the connections of the running loop."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.aclose()

    def _pool(self) -> ConnectionPool:
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            # In a forked child the loops of the parent stay here unused: closing them would disturb the parent.
            self._pools = {loop: pool for loop, pool in self._pools.items() if not loop.is_closed()}
            pool = self._pools[loop] = ConnectionPool(self._dialer, self._clock, _CONNECTIONS_MAX, IDLE_S)
        return pool


async def read(response: Response, most: int) -> bytes:
    """Reads the whole body, of at most `most` bytes, and releases the response."""
    try:
        parts: list[bytes] = []
        while part := await response.next_part():
            most -= len(part)
            if most < 0:
                raise TooLarge
            parts.append(part)
        return b"".join(parts)
    finally:
        response.release()


async def fetch(transport: Transport, request: Request, most: int = 2**20) -> tuple[ResponseHead, bytes]:
    """Sends a request and reads the whole response."""
    response = await transport.send(request)
    return response.head, await read(response, most)
