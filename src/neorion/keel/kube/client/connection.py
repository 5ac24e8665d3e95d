"""Opens and closes the way to a cluster."""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp

from neorion.keel.clock import Clock, Rng, SystemClock, system_rng
from neorion.keel.kube.client.api import Client
from neorion.keel.kube.client.cluster import Cluster
from neorion.keel.kube.client.transport import CONNECTIONS_MAX, ORDINARY, Transport

# After a silence of 30 s the kernel asks whether the peer is there, and gives the connection up half a minute later. A
# watch on a dead machine ends that way. It is no ping of ours, because those go unanswered while output waits to be read.
KEEPALIVE = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3))
# Longer than an idle moment of a controller, shorter than what the server and load balancers allow.
IDLE_S_MAX = 60.0


@asynccontextmanager
async def connect(
    cluster: Cluster, agent: str = "neorion", clock: Clock | None = None, rng: Rng | None = None
) -> AsyncGenerator[Client]:
    """A client for as long as the block lasts. What comes before a "/" in `agent` is the field manager of its writes."""
    connector = aiohttp.TCPConnector(
        limit=CONNECTIONS_MAX, keepalive_timeout=IDLE_S_MAX, socket_factory=_socket
    )
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), timeout=ORDINARY
    ) as session:
        yield Client(Transport(cluster, session, clock or SystemClock(), rng or system_rng(), agent))


def _socket(address: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
    made = socket.socket(*address[:3])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE:
        made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
