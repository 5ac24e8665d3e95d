"""Requests on their way: connections, credentials and retries."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from urllib.parse import quote

import aiohttp
from yarl import URL

from neorion.keel.base import Duration, Error, Invalid, Retry, Terminal
from neorion.keel.clock import Clock, Rng
from neorion.keel.kube.client.cluster import Cluster, Impersonation
from neorion.keel.kube.client.credentials import Access, Credentials
from neorion.keel.kube.client.faults import refused, translated, worth_waiting
from neorion.keel.kube.errors import Status, refusal
from neorion.keel.run import Backoff, retry

# A short outage is ridden out here; a long one is the caller's to wait for.
BACKOFF = Backoff(first=Duration.of(ms=100), most=Duration.of(seconds=5), attempts=6)
# The server itself gives up after 60 s: a connection that takes longer is dead.
REQUEST_S_MAX = 65.0
CONNECT_S_MAX = 10.0
# One for each request in flight and each open watch; what is more waits until one is free.
CONNECTIONS_MAX = 128

Params = Sequence[tuple[str, str]]

ORDINARY = aiohttp.ClientTimeout(total=REQUEST_S_MAX, sock_connect=CONNECT_S_MAX)
STREAMING = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S_MAX)


@dataclass(frozen=True, slots=True)
class Request:
    """One call. `repeatable`: doing it twice is as good as once, so a lost answer may be asked for again."""

    method: str
    path: str
    params: Params = ()
    body: bytes | None = None
    content_type: str = "application/json"
    repeatable: bool = False


class Transport:
    """The way to one API server, as one user."""

    def __init__(
        self, cluster: Cluster, session: aiohttp.ClientSession, clock: Clock, rng: Rng, agent: str
    ) -> None:
        self.cluster = cluster
        self.clock = clock
        self.rng = rng
        self._session = session
        self._agent = agent
        self._credentials = Credentials(cluster, clock)
        self.rehearses = False
        self._headers = [
            ("User-Agent", agent),
            # Objects as JSON; streams and logs have no such form.
            ("Accept", "application/json, */*"),
            # Inside a cluster the network is faster than gzip.
            ("Accept-Encoding", "identity"),
            *_impersonating(cluster.acting_as),
        ]

    def acting_as(self, whom: Impersonation) -> "Transport":
        """The same connections and credentials, with another's rights."""
        cluster = replace(self.cluster, acting_as=whom)
        other = Transport(cluster, self._session, self.clock, self.rng, self._agent)
        other._credentials = self._credentials
        other.rehearses = self.rehearses
        return other

    def rehearsing(self) -> "Transport":
        """The same connections and credentials; the server checks every write, answers as if, and keeps none."""
        other = Transport(self.cluster, self._session, self.clock, self.rng, self._agent)
        other._credentials = self._credentials
        other.rehearses = True
        return other

    async def call(self, request: Request) -> bytes:
        """The body of the answer. Waits out what is known to pass; the server's Retry-After is the least wait."""

        async def attempt() -> bytes | Error:
            try:
                async with self.open(request, ORDINARY) as response:
                    with translated(self.cluster.server):
                        return await response.read()
            except Retry as error:
                if worth_waiting(error, repeatable=request.repeatable):
                    raise
                return error

        answer = await retry(attempt, BACKOFF, self.clock, self.rng)
        if isinstance(answer, Error):
            raise answer
        return answer

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The body of an answer as it comes, in pieces. Nothing is retried but stale credentials."""
        async with self.open(request, STREAMING) as response:
            yield self._pieces(response)

    async def _pieces(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        while True:
            with translated(self.cluster.server):
                piece = await response.content.readany()
            if not piece:
                return
            yield piece

    @asynccontextmanager
    async def open(
        self, request: Request, patience: aiohttp.ClientTimeout
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        with translated(self.cluster.server):
            response = await self._send(request, patience)
        async with response:
            if response.status >= 300:
                with translated(self.cluster.server):
                    body = await response.read()
                raise refused(response, body)
            yield response

    async def _send(self, request: Request, patience: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        access = await self._credentials.access()
        response = await self._request(request, access, patience)
        if response.status == 401 and self._credentials.refused(access):
            response.release()
            response = await self._request(request, await self._credentials.access(), patience)
        return response

    async def _request(
        self, request: Request, access: Access, patience: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        headers = [*self._headers, *access.headers.items()]
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        rehearsed = self.rehearses and request.method != "GET"
        params = [*request.params, ("dryRun", "All")] if rehearsed else request.params
        return await self._session.request(
            request.method,
            self._url(request.path, params),
            data=request.body,
            headers=headers,
            timeout=patience,
            allow_redirects=False,
            ssl=access.tls,
            server_hostname=self.cluster.trust.server_name or None,
            proxy=self.cluster.proxy or None,
        )

    @asynccontextmanager
    async def websocket(
        self, path: str, params: Params, protocol: str
    ) -> AsyncGenerator[aiohttp.ClientWebSocketResponse[bool]]:
        """A WebSocket that speaks `protocol`."""
        with translated(self.cluster.server):
            access = await self._credentials.access()
            try:
                socket = await self._handshake(path, params, protocol, access)
            except aiohttp.WSServerHandshakeError as error:
                if error.status != 401 or not self._credentials.refused(access):
                    raise await self._why_refused(path, params, error) from None
                socket = await self._handshake(path, params, protocol, await self._credentials.access())
        async with socket:
            if socket.protocol != protocol:
                raise Terminal(
                    "kube.protocol",
                    f"The API server does not speak {protocol}.",
                    hint="Use Kubernetes 1.33 or newer, and proxies that pass WebSockets.",
                )
            yield socket

    async def _handshake(
        self, path: str, params: Params, protocol: str, access: Access
    ) -> aiohttp.ClientWebSocketResponse[bool]:
        return await self._session.ws_connect(
            self._url(path, params),
            protocols=(protocol,),
            headers=[*self._headers, *access.headers.items()],
            ssl=access.tls,
            server_hostname=self.cluster.trust.server_name or None,
            proxy=self.cluster.proxy or None,
        )

    async def _why_refused(self, path: str, params: Params, error: aiohttp.WSServerHandshakeError) -> Error:
        """A refused handshake comes without its words: the same address is asked again in plain HTTP for them."""
        try:
            await self.call(Request("GET", path, params))
        except Error as told:
            # That an upgrade is required is only the answer to this question.
            if told.code != "kube.bad_request":
                return told
        return refusal(Status(code=error.status, reason=error.message))

    def _url(self, path: str, params: Params) -> URL:
        # Paths come quoted: a slash within a name must stay encoded.
        return URL(self.cluster.server + path, encoded=True).extend_query(params)


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
            "Nobody can be impersonated by an empty name, or by one with control characters.",
            hint="Check where the user's name comes from.",
        )
    return headers
