"""A cluster with Kueue and one simulated machine, and a way to run one check on it."""

import hashlib
import os
from collections.abc import AsyncGenerator, Generator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from neorion.conformance.adapters.kinds import LOCAL_QUEUE
from neorion.drydock.binaries import ready
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.simulated import SimulatedNodeGroup
from neorion.drydock.testing import shared_cluster
from neorion.keel.base import Duration, NotFound
from neorion.keel.clock import SystemClock
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.core import CONFIG_MAP
from tests.conformance.checker import Checker
from tests.kube.conftest import cut_connections

__all__ = ["cut_connections"]

_NAME = f"conf-{hashlib.sha256(str(Path(__file__).parent).encode()).hexdigest()[:8]}"
_WISHES = ClusterOptions((SimulatedNodeGroup(1, "h100x8"),), kueue=True)


@pytest.fixture(scope="session")
def platform() -> Generator[Cluster]:
    if not ready(*_WISHES.programs):
        pytest.skip("the programs of clusters are not built (neorion drydock build)")
    with shared_cluster(_NAME, ClusterManager.of(), _WISHES) as cluster:
        anyio.run(_collects_garbage, cluster)
        yield cluster


async def _collects_garbage(cluster: Cluster) -> None:
    """Waits until the garbage collector knows Kueue's kinds. It looks for new kinds every 30 s."""
    name = f"owner-{os.getpid()}"
    async with connect(read_kubeconfig([cluster.kubeconfig]).cluster(), "test") as client:
        owner = await client.create(CONFIG_MAP, {"metadata": {"name": name, "namespace": "default"}})
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner.meta.uid}
        metadata = {"name": name, "namespace": "default", "ownerReferences": [reference]}
        await client.create(LOCAL_QUEUE, {"metadata": metadata, "spec": {"clusterQueue": "none"}})
        await client.delete(CONFIG_MAP, name, "default")
        with anyio.fail_after(90), suppress(NotFound):
            while await client.get(LOCAL_QUEUE, name, "default"):
                await SystemClock().sleep(Duration.of(ms=200))


@pytest.fixture
async def client(platform: Cluster) -> AsyncGenerator[Client]:
    async with connect(read_kubeconfig([platform.kubeconfig]).cluster(), "test") as found:
        yield found


@pytest.fixture
def checker(client: Client, tmp_path: Path) -> Checker:
    return Checker(client, tmp_path)
