"""A cluster with one real node that has two emulated devices, and with every add-on that is built."""

import hashlib
from collections.abc import AsyncGenerator, Generator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from neorion.drydock.addons import ADDONS
from neorion.drydock.binaries import ready
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.images import BUSYBOX
from neorion.drydock.node import NodeSpec, add
from neorion.drydock.simulated import SimulatedNodeGroup
from neorion.drydock.testing import shared_cluster
from neorion.keel.base import Conflict
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from tests.conformance.checker import OPTIONS, Checker
from tests.node.pods import push_test_image

NODE = "gpu1"
_NAME = f"conf-{hashlib.sha256(str(Path(__file__).parent).encode()).hexdigest()[:8]}"


@pytest.fixture(scope="session")
def platform() -> Generator[Cluster]:
    addons = tuple(name for name, addon in ADDONS.items() if ready(*addon.programs))
    options = ClusterOptions((SimulatedNodeGroup(2, "h100x8"),), networked=True, addons=addons)
    if not ready(*options.programs):
        pytest.skip("the programs of clusters are not built (neorion drydock build)")
    with shared_cluster(_NAME, ClusterManager.of(), options) as cluster:
        anyio.run(_prepare, cluster)
        yield cluster


async def _prepare(cluster: Cluster) -> None:
    await push_test_image(cluster)
    # Another process of this run may have added it.
    with suppress(Conflict):
        await add(cluster, NODE, NodeSpec(gpus=2))


@pytest.fixture
async def client(platform: Cluster) -> AsyncGenerator[Client]:
    async with connect(read_kubeconfig([platform.kubeconfig]).cluster(), "test") as found:
        yield found


@pytest.fixture
def checker(client: Client, tmp_path: Path) -> Checker:
    return Checker(client, tmp_path, replace(OPTIONS, image=BUSYBOX.name))
