"""An API server that fails at random: a proxy before the real one."""

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import ClientError, ClientSession, TCPConnector, web

from neorion.drydock.cluster import Cluster
from neorion.keel.clock import Rng, seeded_rng
from neorion.keel.kube.client import Client, ClusterConfig, connect
from tests.keel.kube.stage import serving

_KEPT = ("Content-Type", "Accept")


@dataclass
class FlakyServer:
    """Passes requests on. A share of them is refused, carried out without an answer, or broken off in the answer.

    The first namespace that is made begins it, so that runs get as far as their checks.
    """

    session: ClientSession
    server: str
    rng: Rng
    share: float
    failures: int = 0
    begun: bool = False

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        fate = self._fate() if self.begun else "carried out"
        self.begun = self.begun or (request.method == "POST" and request.path.endswith("/namespaces"))
        if fate == "refused":
            code = self.rng.choice((500, 502, 503))
            return web.json_response({"kind": "Status", "code": code, "message": "at random"}, status=code)
        headers = {name: request.headers[name] for name in _KEPT if name in request.headers}
        url = self.server + request.raw_path
        async with self.session.request(request.method, url, data=body or None, headers=headers) as answer:
            response = web.StreamResponse(status=answer.status)
            response.content_type = answer.content_type
            if fate == "unanswered":
                return self._cut(request, response)
            await response.prepare(request)
            try:
                async for piece in answer.content.iter_any():
                    await response.write(piece)
                    if fate == "broken":
                        return self._cut(request, response)
            except (ClientError, ConnectionError):
                return self._cut(request, response)
            await response.write_eof()
            return response

    def _fate(self) -> str:
        if self.rng.random() >= self.share:
            return "carried out"
        self.failures += 1
        return self.rng.choice(("refused", "unanswered", "broken"))

    def _cut(self, request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return response


@asynccontextmanager
async def flaky(
    cluster: Cluster, seed: int, share: float = 0.05
) -> AsyncGenerator[tuple[FlakyServer, Client]]:
    """The proxy, and a client that reaches the cluster through it, as the administrator."""
    pki = cluster.pki
    context = ssl.create_default_context(cafile=pki.certificate("ca"))
    context.load_cert_chain(pki.certificate("admin"), pki.key("admin"))
    async with ClientSession(connector=TCPConnector(ssl=context, limit=0)) as session:
        server = FlakyServer(session, cluster.layout.server, seeded_rng(seed), share)
        async with serving(server.handle) as url, connect(ClusterConfig(url), "test") as client:
            yield server, client
