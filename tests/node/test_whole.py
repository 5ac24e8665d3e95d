"""The whole of a cluster in one sitting, by the commands that a person types."""

import json
import os
import sys
from pathlib import Path

import pytest

from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager
from neorion.drydock.coreweave import POOL
from neorion.drydock.machine import ask
from neorion.keel.clock import SystemClock
from tests.drydock.traces import traces
from tests.drydock.workloads import apply, job, pool, queue, wait
from tests.node.pods import NEEDS, SLEEP, Kubectl, claim, pod, push_test_image, with_claim

CLOCK = SystemClock()
# Asked for again, a cluster is there before a person has looked away.
AGAIN_S_MAX = 10.0


async def _drydock(home: Path, *words: str) -> str:
    return await ask(["env", f"XDG_STATE_HOME={home}", sys.executable, "-m", "neorion", "drydock", *words])


async def _data_outlives_its_pod(kubectl: Kubectl) -> None:
    volume = with_claim("data", "/data")
    await kubectl.apply(claim("data"))
    await kubectl.run(pod("first", "echo kept > /data/file; exec sleep 100000", "node1", **volume))
    await kubectl.remove("pod", "first")
    await kubectl.run(pod("second", SLEEP, "node2", **volume))
    assert await kubectl("exec", "second", "--", "cat", "/data/file") == "kept\n"


async def _a_job_waits_for_quota_and_then_runs(cluster: Cluster) -> None:
    await apply(cluster, *queue("small", gpus=8))
    await apply(cluster, job("first", "small", "1h"))
    await wait(cluster, "job/first", "jsonpath={.status.ready}=1")
    await apply(cluster, job("second", "small", "10ms"))
    await wait(cluster, "job/second", "condition=Suspended")
    await cluster.kubectl("delete", "job", "first")
    await wait(cluster, "job/second", "condition=Complete")


async def _a_pool_comes_and_goes(cluster: Cluster) -> None:
    await apply(cluster, pool("two", targetNodes=2))
    await wait(cluster, "nodepool/two", "condition=AtTarget")
    names = (await cluster.kubectl("get", "nodes", "-l", f"{POOL}=two", "-o", "name")).split()
    assert len(names) == 2
    for name in names:
        await wait(cluster, name, "condition=Ready")
    await cluster.kubectl("delete", "nodepool", "two")
    for name in names:
        await wait(cluster, name, "delete")


@pytest.mark.slow
@NEEDS
@pytest.mark.needs("drydock")
@pytest.mark.anyio
@pytest.mark.timeout(600)
async def test_real_and_simulated_nodes_with_kueue_and_node_pools_come_work_and_go_without_a_trace(
    tmp_path: Path,
):
    wishes = ("--nodes", "2", "--simulated", "100:h100x8", "--with", "kueue,coreweave")
    yard = ClusterManager.of({**os.environ, "XDG_STATE_HOME": str(tmp_path)})
    try:
        await _drydock(tmp_path, "up", "--name", "whole", *wishes)
        cluster = yard.find("whole")
        nodes = json.loads(await cluster.kubectl("get", "nodes", "-o", "json"))["items"]
        assert len(nodes) == 102
        await push_test_image(cluster)
        await _data_outlives_its_pod(Kubectl(cluster, "default"))
        await _a_job_waits_for_quota_and_then_runs(cluster)
        await _a_pool_comes_and_goes(cluster)
        await _drydock(tmp_path, "down", "--name", "whole")
        assert traces(cluster.layout) == []
        began = CLOCK.monotonic()
        await _drydock(tmp_path, "up", "--name", "whole", *wishes)
        assert CLOCK.monotonic() - began < AGAIN_S_MAX
    finally:
        await yard.down("whole")
    assert traces(cluster.layout) == []
