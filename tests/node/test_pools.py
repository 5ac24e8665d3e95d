"""NodePools whose machines are real: pods run on them, and they go with their pools."""

import json
from collections.abc import AsyncGenerator

import anyio
import msgspec
import pytest

from neorion.drydock.cluster import Cluster
from neorion.drydock.coreweave import MACHINES, POOL, Fault, NodeBacking, start_coreweave
from neorion.drydock.host import running
from neorion.drydock.node import nodes
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock
from tests.drydock.workloads import GPU, apply, pool, wait
from tests.node.pods import ALONE, MINUTES, NEEDS, SLEEP, TOLERANT, Kubectl, pod

pytestmark = [pytest.mark.anyio, NEEDS, MINUTES, pytest.mark.needs("drydock")]

LOOK_EVERY = Duration.of(ms=100)


@pytest.fixture
async def cloud(node_cluster: Cluster) -> AsyncGenerator[Cluster]:
    await start_coreweave(node_cluster, Duration.of(ms=100))
    yield node_cluster
    await node_cluster.kubectl("delete", "nodepool", "--all")
    with anyio.fail_after(120):
        while _machines(node_cluster):
            await SystemClock().sleep(LOOK_EVERY)


def _machines(cluster: Cluster) -> list[str]:
    return [node.name for node in nodes(cluster.layout) if POOL in node.spec.labels]


async def _apply(cluster: Cluster, fault: str = "") -> None:
    body = pool("solid", fault, targetNodes=1, nodeTaints=[msgspec.to_builtins(ALONE)])
    body["metadata"]["annotations"][MACHINES] = NodeBacking.REAL
    await apply(cluster, body)


async def test_a_pool_of_real_machines_runs_pods_replaces_the_lost_and_goes_without_a_trace(
    cloud: Cluster, kubectl: Kubectl
):
    await _apply(cloud)
    await wait(cloud, "nodepool/solid", "condition=AtTarget")
    # Devices are counted a moment after a node is Ready.
    await kubectl.until("node/solid-0", r"{.status.allocatable.nvidia\.com/gpu}", "8")
    node = await kubectl.get("node", "solid-0")
    assert node["spec"]["providerID"] == "coreweave://solid-0"
    limits = {"resources": {"limits": {GPU: "8"}}}
    await kubectl.run(pod("guest", SLEEP, nodeSelector={POOL: "solid"}, container=limits, **TOLERANT))
    assert "nvidia" in await kubectl("exec", "guest", "--", "sh", "-c", "ls /dev | grep nvidia0")

    await _apply(cloud, Fault.NODE_LOST)
    await wait(cloud, "node/solid-0", "condition=Ready=Unknown")
    await _apply(cloud)
    await kubectl.until("nodepool/solid", "{.status.currentNodes}", "1")
    after = json.loads(await cloud.kubectl("get", "node", "-l", f"{POOL}=solid", "-o", "json"))["items"]
    assert [one["metadata"]["uid"] for one in after] != [node["metadata"]["uid"]]

    part = next(one.part for one in nodes(cloud.layout) if POOL in one.spec.labels)
    assert running(cloud.layout.folder, part)
    await cloud.kubectl("delete", "nodepool", "solid")
    with anyio.fail_after(120):
        while _machines(cloud):
            await SystemClock().sleep(LOOK_EVERY)
    assert running(cloud.layout.folder, part) == []
