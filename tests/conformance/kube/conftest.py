"""A cluster with Kueue and one simulated machine, and a way to run one check on it."""

import hashlib
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from neorion.drydock.binaries import ready
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.simulated import SimulatedNodeGroup
from neorion.drydock.testing import shared_cluster
from neorion.keel.kube.client import Client, connect, read_kubeconfig
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
        yield cluster


@pytest.fixture
async def client(platform: Cluster) -> AsyncGenerator[Client]:
    async with connect(read_kubeconfig([platform.kubeconfig]).cluster(), "test") as found:
        yield found


@pytest.fixture
def checker(client: Client, tmp_path: Path) -> Checker:
    return Checker(client, tmp_path)
