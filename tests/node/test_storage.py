"""Claims, and the data behind them."""

import pytest

from neorion.drydock.cluster import Cluster
from tests.node.pods import MINUTES, NEEDS, SLEEP, Kubectl, claim, pod, with_claim

pytestmark = [pytest.mark.anyio, NEEDS, MINUTES]


async def test_data_outlives_the_pod_and_moves_to_another_node(kubectl: Kubectl):
    volume = with_claim("data", "/data")
    await kubectl.apply(claim("data"))
    await kubectl.run(pod("first", "echo kept > /data/file; exec sleep 100000", "node1", **volume))
    await kubectl.remove("pod", "first")
    await kubectl.run(pod("second", SLEEP, "node2", **with_claim("data", "/data")))
    assert await kubectl("exec", "second", "--", "cat", "/data/file") == "kept\n"


async def test_a_pod_that_is_not_root_may_write_to_its_volume(kubectl: Kubectl):
    volume = with_claim("data", "/data", securityContext={"runAsUser": 65534, "runAsNonRoot": True})
    await kubectl.apply(claim("data"))
    await kubectl.run(pod("writer", "echo mine > /data/file && exec sleep 100000", **volume))
    assert await kubectl("exec", "writer", "--", "cat", "/data/file") == "mine\n"


async def test_the_volume_goes_with_its_claim(kubectl: Kubectl, node_cluster: Cluster):
    await kubectl.apply(claim("data"))
    await kubectl.until("pvc/data", "{.status.phase}", "Bound")
    name = (await kubectl.get("pvc", "data"))["spec"]["volumeName"]
    folder = node_cluster.layout.folder / "volumes" / name
    assert folder.is_dir()
    await kubectl("delete", "pvc", "data")
    await kubectl("wait", "--for=delete", f"pv/{name}", "--timeout=180s")
    assert not folder.exists()
