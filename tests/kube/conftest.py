"""A client of the test run's cluster, and the kinds that tests define."""

import gc
import warnings
from collections.abc import AsyncGenerator, Generator

import pytest

from neorion.drydock.cluster import Cluster
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock
from neorion.keel.kube import condition
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.core import DEFINITION
from tests.contracts.kube_api import WIDGET

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
    definition = await client.apply(DEFINITION, _WIDGETS, "contract")
    while not _established(definition.status.conditions):
        await SystemClock().sleep(Duration.of(ms=20))
        definition = await client.get(DEFINITION, WIDGET.resource)


def _established(conditions) -> bool:
    found = condition(conditions, "Established")
    return found is not None and found.holds


@pytest.fixture
def cut_connections() -> Generator[None]:
    """For tests that break connections: asyncio leaves one whose handshake was cut to the garbage collector.

    It is collected here, so that its warning does not become the failure of whichever test runs when Python gets to it.
    """
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
