"""Opens and closes the way to a cluster."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from neorion.keel.clock import Clock, Rng, SystemClock, system_rng
from neorion.keel.http.connection_pool import ConnectionPool
from neorion.keel.http.dialer import Dialer
from neorion.keel.kube.client.api import Client
from neorion.keel.kube.client.cluster_config import ClusterConfig
from neorion.keel.kube.client.transport import KubeTransport


@asynccontextmanager
async def connect(
    cluster: ClusterConfig, agent: str = "neorion", clock: Clock | None = None, rng: Rng | None = None
) -> AsyncGenerator[Client]:
    """A client for as long as the block lasts. What comes before a "/" in `agent` is the field manager of its writes."""
    clock = clock or SystemClock()
    dialer = Dialer(cluster.server, cluster.proxy or cluster.usual_proxy, cluster.trust.server_name)
    connections = ConnectionPool(dialer, clock)
    try:
        yield Client(KubeTransport(cluster, connections, clock, rng or system_rng(), agent))
    finally:
        await connections.aclose()
