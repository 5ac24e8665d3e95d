"""A namespace of one's own in a cluster that others use too."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from neorion.drydock.api import Api
from neorion.drydock.cluster import Cluster
from neorion.keel.base import Duration, NotFound


@asynccontextmanager
async def namespace(cluster: Cluster) -> AsyncGenerator[str]:
    """Ready for pods: its default service account is there. Its deletion is begun, not awaited."""
    async with cluster.api() as api:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}}
        made = await api.create("/api/v1/namespaces", body)
        path = f"/api/v1/namespaces/{made['metadata']['name']}"
        while not await _has_account(api, path):
            await cluster.clock.sleep(Duration.of(ms=20))
        yield made["metadata"]["name"]
        await api.delete(path)


async def _has_account(api: Api, path: str) -> bool:
    try:
        await api.get(f"{path}/serviceaccounts/default")
    except NotFound:
        return False
    return True
