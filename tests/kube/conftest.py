"""A client of the test run's cluster, and the kinds that tests define."""

import gc
import hashlib
import warnings
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import anyio
import pytest

from neorion.drydock.binaries import ready
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.control import PROGRAMS
from neorion.drydock.simulated import SimulatedNodeGroup
from neorion.drydock.storage import publish_storage, storage_part
from neorion.drydock.testing import namespace, shared_cluster
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.core import DEFINITION
from tests.contracts.kube_api import WIDGET
from tests.kube.dev_room import Room, define, room_in, served

# Of this checkout: two of them may be tested at the same time.
_FLEET = f"fleet-{hashlib.sha256(str(Path(__file__).parent).encode()).hexdigest()[:8]}"
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_WIDGETS = {
    "metadata": {"name": WIDGET.resource},
    "spec": {
        "group": WIDGET.group,
        "scope": "Namespaced",
        "names": {"kind": WIDGET.name, "plural": WIDGET.plural},
        "versions": [
            {
                "name": WIDGET.version,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer", "maximum": 100},
                                    "colour": {"type": "string"},
                                },
                            },
                            "status": _OPEN,
                        },
                    }
                },
                "subresources": {"status": {}},
            }
        ],
    },
}


@pytest.fixture
async def api(cluster: Cluster) -> AsyncGenerator[Client]:
    async with connect(read_kubeconfig([cluster.kubeconfig]).cluster(), "contract/1") as client:
        await defined(client)
        yield client


async def defined(client: Client) -> None:
    """Installs the kinds of the tests."""
    await client.apply(DEFINITION, _WIDGETS, "contract")
    await served(client, WIDGET)


async def furnish(cluster: Cluster) -> None:
    """Volumes, and the kinds of development servers."""
    async with cluster.api() as api:
        await publish_storage(api)
    await cluster.ensure(storage_part(cluster.layout, cluster.pki))
    async with connect(read_kubeconfig([cluster.kubeconfig]).cluster(), "test") as client:
        await define(client)


async def _furnish_alone(name: str) -> None:
    """Others who share the cluster may be about to."""
    async with ClusterManager.of().exclusive(name) as cluster:
        await furnish(cluster)


@pytest.fixture(scope="session")
def fleet() -> Generator[Cluster]:
    """A real control plane with simulated nodes and volumes, one for the whole run."""
    if not ready(*PROGRAMS, "kwok"):
        pytest.skip("the programs of clusters are not built (neorion drydock build)")
    with shared_cluster(
        _FLEET, ClusterManager.of(), ClusterOptions(simulated=(SimulatedNodeGroup(4),))
    ) as cluster:
        anyio.run(_furnish_alone, cluster.name)
        yield cluster


@pytest.fixture
async def fleet_api(fleet: Cluster) -> AsyncGenerator[Client]:
    async with connect(read_kubeconfig([fleet.kubeconfig]).cluster(), "devservers") as client:
        yield client


@pytest.fixture
async def room(fleet: Cluster, fleet_api: Client) -> AsyncGenerator[Room]:
    """A namespace of the test's own, in which the laws of development servers hold."""
    async with namespace(fleet) as name, room_in(fleet_api, name) as made:
        yield made


@pytest.fixture
def cut_connections() -> Generator[None]:
    """For tests that break connections: asyncio leaves one whose handshake was cut to the garbage collector.

    It is collected here, so that its warning does not become the failure of whichever test runs when Python gets to it.
    """
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
