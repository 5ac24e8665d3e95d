"""Machines of CoreWeave on a real API server, with drydock's player on the other side."""

import os
from collections.abc import AsyncGenerator, Generator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from neorion.capacity.coreweave import CoreWeaveProvider
from neorion.capacity.coreweave.nodepools import INTENT, NODE_POOL
from neorion.capacity.node import marks
from neorion.capacity.provider import Intent, IntentId, MachineState
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.keel.base import Invalid, NotFound
from neorion.keel.clock import SystemIds
from neorion.keel.config import loads
from neorion.keel.kube import Added, KubeApi, Modified, Selector, condition
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.core import NODE, Node
from neorion.navarch.adapters.config_file import ConfigFile
from neorion.navarch.app.server import serving
from tests.capacity.clouds.node_pools import H100

pytestmark = [pytest.mark.anyio, pytest.mark.needs("drydock"), pytest.mark.timeout(480)]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    yard = ClusterManager.of({**os.environ, "XDG_STATE_HOME": str(tmp_path_factory.mktemp("buying"))})
    try:
        yield anyio.run(yard.up, "buying", ClusterOptions(coreweave=True))
    finally:
        anyio.run(yard.down, "buying")


@pytest.fixture
async def api(cloud: Cluster) -> AsyncGenerator[Client]:
    async with connect(read_kubeconfig([cloud.kubeconfig]).cluster(), "navarch") as client:
        yield client


def _intent() -> Intent:
    return Intent(SystemIds().new(IntentId), "navarch-a", H100, "us-east-04")


async def _ready(api: KubeApi, intent: str) -> Node:
    """The node of a machine, when it has booted."""
    async with api.watch(NODE, select=Selector(labels=f"{INTENT}={intent}")) as events:
        async for event in events:
            if isinstance(event, Added | Modified):
                ready = condition(event.object.status.conditions, "Ready")
                if ready is not None and ready.holds:
                    return event.object
    raise AssertionError(intent)


async def test_a_machine_is_bought_once_arrives_and_is_given_back(api: Client):
    provider, intent = CoreWeaveProvider("coreweave", api), _intent()
    bought = await provider.provision(intent)
    assert (await provider.provision(intent)).id == bought.id
    node = await _ready(api, intent.id)
    machine = await provider.describe(bought.id)
    assert (machine.name, machine.state) == (node.meta.name, MachineState.RUNNING)
    assert await provider.list(intent.owner) == [machine]
    await provider.terminate(machine.id)
    with pytest.raises(NotFound):
        await provider.terminate(machine.id)
    assert await provider.list(intent.owner) == []


async def test_what_coreweave_finds_wrong_is_refused_and_leaves_nothing(api: Client):
    intent = replace(_intent(), instance_type="gd-9xh100")
    with pytest.raises(Invalid, match="gd-9xh100"):
        await CoreWeaveProvider("coreweave", api).provision(intent)
    with pytest.raises(NotFound):
        await api.get(NODE_POOL, intent.id)


FILE = """
server: {{ address: "127.0.0.1:0", state_dir: {folder}/state }}
providers: {{ coreweave: {{ kubeconfig: {kubeconfig} }} }}
pools:
  - {{ name: training, provider: coreweave, instance_type: {kind}, min_nodes: 2, max_nodes: 2 }}
"""


async def test_navarch_fills_a_pool_with_nodes_that_carry_its_marks(
    cloud: Cluster, api: Client, tmp_path: Path
):
    text = FILE.format(folder=tmp_path, kubeconfig=cloud.kubeconfig, kind=H100)
    file = loads(text, ConfigFile, {}, file="config.yaml")
    async with serving(file, tmp_path, {"HOME": str(tmp_path)}) as running:
        fleet = running.plane.fleet
        await fleet.tick()
        await fleet.effects.idle()
        bought = list(fleet.context.state.nodes.values())
        arrived = [await _ready(api, node.machine) for node in bought]
    assert [node.meta.labels[marks.NODE_ID] for node in arrived] == [node.id for node in bought]
    assert {node.meta.labels[marks.POOL] for node in arrived} == {"training"}
