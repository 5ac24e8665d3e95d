"""Sends requests to the API server: connections, credentials and retries."""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from msgspec import Struct
from msgspec.structs import replace

from neorion.keel.base import Duration, Error, Invalid, Retry, Terminal
from neorion.keel.clock import Clock, Rng
from neorion.keel.http.connection_pool import ConnectionPool, PooledResponse
from neorion.keel.http.message import Headers, ResponseHead
from neorion.keel.kube.client.cluster_config import ClusterConfig, Impersonation
from neorion.keel.kube.client.credentials import Credentials, RequestAuth
from neorion.keel.kube.client.errors import refused, translated, worth_waiting
from neorion.keel.run import Backoff, retry

if TYPE_CHECKING:
    from neorion.keel.kube.client.websocket import WebSocket

# A short outage is retried here; a long one is left to the caller.
BACKOFF = Backoff(first=Duration.of(ms=100), most=Duration.of(seconds=5), attempts=6)
# The server itself gives up after 60 s, so a connection that takes longer is dead.
REQUEST_S_MAX = 65.0

Params = Sequence[tuple[str, str]]


class HttpRequest(Struct, frozen=True):
    """One request.

    A `repeatable` one has the same effect when executed twice, so it is sent again if the response is lost.
    """

    method: str
    path: str
    params: Params = ()
    body: bytes | None = None
    content_type: str = "application/json"
    repeatable: bool = False


class KubeTransport:
    """The connection to one API server, as one user."""

    def __init__(
        self, cluster: ClusterConfig, connections: ConnectionPool, clock: Clock, rng: Rng, agent: str
    ) -> None:
        self.cluster = cluster
        self.clock = clock
        self.rng = rng
        self._connections = connections
        self._agent = agent
        self._credentials = Credentials(cluster, clock)
        self.rehearses = False
        self._headers = [
            ("User-Agent", agent),
            # Objects as JSON; streams and logs have no JSON form.
            ("Accept", "application/json, */*"),
            # Inside a cluster the network is faster than gzip.
            ("Accept-Encoding", "identity"),
            *_impersonating(cluster.acting_as),
        ]

    def acting_as(self, whom: Impersonation) -> "KubeTransport":
        """The same connections and credentials, with the rights of another user."""
        cluster = replace(self.cluster, acting_as=whom)
        other = KubeTransport(cluster, self._connections, self.clock, self.rng, self._agent)
        other._credentials = self._credentials
        other.rehearses = self.rehearses
        return other

    def rehearsing(self) -> "KubeTransport":
        """The same connections and credentials with dry-run writes: the server checks them and stores nothing."""
        other = KubeTransport(self.cluster, self._connections, self.clock, self.rng, self._agent)
        other._credentials = self._credentials
        other.rehearses = True
        return other

    async def call(self, request: HttpRequest) -> bytes:
        """Returns the body of the response.

        Retries temporary failures; a wait is never shorter than the server's Retry-After.
        """

        async def attempt() -> bytes | Error:
            try:
                return await self.once(request)
            except Retry as error:
                if worth_waiting(error, repeatable=request.repeatable):
                    raise
                return error

        answer = await retry(attempt, BACKOFF, self.clock, self.rng)
        if isinstance(answer, Error):
            raise answer
        return answer

    async def once(self, request: HttpRequest) -> bytes:
        """Sends a request once, and once more with fresh credentials. For callers with their own retries."""
        access = await self._credentials.access()
        head, body = await self._whole(request, access)
        if head.status == 401 and self._credentials.refused(access):
            head, body = await self._whole(request, await self._credentials.access())
        if head.status >= 300:
            raise refused(head, body)
        return body

    async def _whole(self, request: HttpRequest, access: RequestAuth) -> tuple[ResponseHead, bytes]:
        with translated(self.cluster.server):
            async with asyncio.timeout(REQUEST_S_MAX):
                answer = await self._ask(request, access)
                return answer.head, await answer.read()

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Yields the body of a response in chunks. Retries only expired credentials."""
        async with self._opened(request) as answer:
            yield self._chunks(answer)

    async def _chunks(self, answer: PooledResponse) -> AsyncIterator[bytes]:
        while True:
            with translated(self.cluster.server):
                chunk = await answer.next_part()
            if not chunk:
                return
            yield chunk

    @asynccontextmanager
    async def websocket(self, path: str, params: Params, protocol: str) -> AsyncGenerator["WebSocket"]:
        """Opens a WebSocket with the subprotocol `protocol`."""
        from neorion.keel.kube.client import websocket  # noqa: PLC0415 -- most commands open none, and the import is slow

        key = b64encode(self.rng.randrange(0, 2**128).to_bytes(16)).decode()
        headers = websocket.upgrade_headers(key, protocol)
        async with self._opened(HttpRequest("GET", path, params), headers, REQUEST_S_MAX) as answer:
            if not websocket.accepted(answer.head, key, protocol):
                raise Terminal(
                    "kube.protocol",
                    f"The API server does not support {protocol}.",
                    hint="Use Kubernetes 1.33 or newer, and proxies that pass WebSockets.",
                )
            socket = websocket.WebSocket(answer.connection.link, answer.connection.reading.behind)
            try:
                yield socket
            finally:
                socket.close()

    @asynccontextmanager
    async def _opened(
        self, request: HttpRequest, more: Headers = (), within_s: float | None = None
    ) -> AsyncGenerator[PooledResponse]:
        """Opens a response whose body has not been read; an error response is read and raised.

        Without `within_s` there is no time limit, because the log of a silent container has no head before its first
        line.
        """
        access = await self._credentials.access()
        answer = await self._begun(request, access, more, within_s)
        if answer.head.status == 401 and self._credentials.refused(access):
            answer.release()
            answer = await self._begun(request, await self._credentials.access(), more, within_s)
        async with answer:
            if answer.head.status >= 300:
                with translated(self.cluster.server):
                    async with asyncio.timeout(REQUEST_S_MAX):
                        body = await answer.read()
                raise refused(answer.head, body)
            yield answer

    async def _begun(
        self, request: HttpRequest, access: RequestAuth, more: Headers, within_s: float | None
    ) -> PooledResponse:
        with translated(self.cluster.server):
            async with asyncio.timeout(within_s):
                return await self._ask(request, access, more)

    async def _ask(self, request: HttpRequest, access: RequestAuth, more: Headers = ()) -> PooledResponse:
        headers = [*self._headers, *access.headers.items(), *more]
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        rehearsed = self.rehearses and request.method != "GET"
        params = [*request.params, ("dryRun", "All")] if rehearsed else request.params
        # Paths arrive quoted: a slash within a name must stay encoded.
        path = f"{request.path}?{urlencode(params, quote_via=quote)}" if params else request.path
        written = self._connections.written(request.method, path, headers, request.body or b"")
        repeatable = request.repeatable or request.method == "GET"
        try:
            return await self._connections.ask(written, access.tls, repeatable=repeatable)
        except ssl.SSLCertVerificationError:
            # Nothing was sent.
            if not self._credentials.untrusting(access):
                raise
            newest = await self._credentials.access()
            return await self._connections.ask(written, newest.tls, repeatable=repeatable)


def _impersonating(whom: Impersonation | None) -> list[tuple[str, str]]:
    if whom is None:
        return []
    headers = [("Impersonate-User", whom.user), *(("Impersonate-Group", group) for group in whom.groups)]
    headers += [("Impersonate-Uid", whom.uid)] if whom.uid else []
    headers += [
        (f"Impersonate-Extra-{quote(name, safe='')}", value)
        for name, values in whom.extra.items()
        for value in values
    ]
    if not whom.user or not all(value.isprintable() for _, value in headers):
        raise Invalid(
            "kube.impersonation",
            "The name of a user to impersonate is empty or has control characters.",
            hint="Check where the user's name comes from.",
        )
    return headers
