"""One cluster with two real nodes for everything in this folder; each test has its own namespace."""

import hashlib
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import anyio
import pytest

from neorion.drydock.binaries import ready
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.control import PROGRAMS
from neorion.drydock.testing import namespace, shared_cluster
from tests.node.devservers import Devctl, operated
from tests.node.pods import Kubectl, push_test_image

# Of this checkout: two of them may be tested at the same time.
_NAME = f"nodes-{hashlib.sha256(str(Path(__file__).parent).encode()).hexdigest()[:8]}"


@pytest.fixture(scope="session")
def node_cluster() -> Generator[Cluster]:
    if not ready(*PROGRAMS, "kubelet", "coredns"):
        pytest.skip("the cluster's programs are not built (neorion drydock build)")
    with shared_cluster(_NAME, ClusterManager.of(), ClusterOptions(nodes=2)) as cluster:
        anyio.run(push_test_image, cluster)
        yield cluster


@pytest.fixture
async def kubectl(node_cluster: Cluster) -> AsyncGenerator[Kubectl]:
    """As the administrator, in a namespace of the test's own."""
    async with namespace(node_cluster) as name:
        yield Kubectl(node_cluster, name)


@pytest.fixture(scope="module")
def devctl(node_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Generator[Devctl]:
    """One namespace and one operator for each file of tests."""
    with operated(node_cluster, tmp_path_factory.mktemp("operator")) as devctl:
        yield devctl
