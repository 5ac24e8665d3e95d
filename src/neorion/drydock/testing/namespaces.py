"""A namespace of one's own in a cluster that others use too."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from neorion.drydock.api import Api
from neorion.drydock.cluster import NEEDED_BY_PODS, Cluster
from neorion.keel.base import Duration, NotFound


@asynccontextmanager
async def namespace(cluster: Cluster) -> AsyncGenerator[str]:
    """Ready for pods: what controllers put into every namespace is there. Its deletion is begun, not awaited."""
    async with cluster.api() as api:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}}
        made = await api.create("/api/v1/namespaces", body)
        path = f"/api/v1/namespaces/{made['metadata']['name']}"
        for thing in NEEDED_BY_PODS:
            while not await _exists(api, f"{path}/{thing}"):
                await cluster.clock.sleep(Duration.of(ms=20))
        try:
            yield made["metadata"]["name"]
        finally:
            await api.delete(path)


async def _exists(api: Api, path: str) -> bool:
    try:
        await api.get(path)
    except NotFound:
        return False
    return True
