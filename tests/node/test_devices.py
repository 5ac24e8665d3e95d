"""Fake GPUs on a real kubelet."""

import os
import signal

import pytest

from neorion.drydock.cluster import Cluster
from neorion.drydock.devices import RESOURCE, DeviceTable, Health
from neorion.drydock.host import running
from neorion.drydock.node import NodeSpec, add, remove
from neorion.keel.base import NotFound
from tests.node.pods import ALONE, MINUTES, NEEDS, SLEEP, TOLERANT, Kubectl, pod

pytestmark = [pytest.mark.anyio, NEEDS, MINUTES]

_OFFERED = r"{.status.allocatable.nvidia\.com/gpu}"


async def test_pods_get_devices_whose_health_can_be_flipped(node_cluster: Cluster, kubectl: Kubectl):
    node = await add(node_cluster, "gpus", NodeSpec(gpus=4, taints=(ALONE,)))
    try:
        resources = {"limits": {RESOURCE: "2"}}
        await kubectl.run(pod("trainer", SLEEP, container={"resources": resources}, **TOLERANT))
        seen = await kubectl(
            "exec", "trainer", "--", "sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES; ls /dev | grep -c nvidia"
        )
        ids, count = seen.split()
        assert count == "2"
        rack = DeviceTable(node.folder)
        known = [slot.id for slot in rack.slots()]
        assert set(ids.split(",")) < set(known)

        await rack.mark(3, Health.UNHEALTHY)
        await kubectl.until("node/gpus", _OFFERED, "3")
        with pytest.raises(NotFound, match="no device 4"):
            await rack.mark(4, Health.UNHEALTHY)

        # A kubelet that restarts has forgotten all devices.
        (kubelet,) = [
            one for one in running(node_cluster.layout.folder, node.part) if one.argv[0].endswith("/kubelet")
        ]
        os.kill(kubelet.pid, signal.SIGKILL)
        await rack.mark(2, Health.UNHEALTHY)
        await kubectl.until("node/gpus", _OFFERED, "2")
        await rack.mark(2, Health.HEALTHY)
        await rack.mark(3, Health.HEALTHY)
        await kubectl.until("node/gpus", _OFFERED, "4")
    finally:
        await remove(node_cluster, "gpus")
