"""Opens and closes the way to a cluster."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp

from neorion.keel.clock import Clock, Rng, SystemClock, system_rng
from neorion.keel.kube.client.api import Client
from neorion.keel.kube.client.cluster import Cluster
from neorion.keel.kube.client.transport import CONNECTIONS_MAX, ORDINARY, Transport

# Longer than an idle moment of a controller, shorter than what the server and load balancers allow.
IDLE_S_MAX = 60.0


@asynccontextmanager
async def connect(
    cluster: Cluster, agent: str = "neorion", clock: Clock | None = None, rng: Rng | None = None
) -> AsyncGenerator[Client]:
    """A client for as long as the block lasts. What comes before a "/" in `agent` is the field manager of its writes."""
    connector = aiohttp.TCPConnector(limit=CONNECTIONS_MAX, keepalive_timeout=IDLE_S_MAX)
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), timeout=ORDINARY
    ) as session:
        yield Client(Transport(cluster, session, clock or SystemClock(), rng or system_rng(), agent))
