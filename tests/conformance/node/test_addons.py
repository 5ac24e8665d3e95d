"""The exporter of emulated devices."""

import re
from typing import Any

import anyio
import pytest

from neorion.drydock.addons.device_metrics import NAME as EXPORTER
from neorion.drydock.cluster import Cluster
from neorion.drydock.devices import DeviceTable
from neorion.keel.base import Duration, NotFound, Retry
from neorion.keel.clock import SystemClock
from tests.conformance.node.conftest import NODE
from tests.node.pods import NEEDS

pytestmark = [pytest.mark.anyio, NEEDS, pytest.mark.timeout(300)]
PATIENCE_S = 60
LOOK_EVERY = Duration.of(ms=500)


async def until(found: Any) -> Any:
    """The first answer that is not empty."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            try:
                answer = await found()
            except (NotFound, Retry):
                answer = None
            if answer:
                return answer
            await SystemClock().sleep(LOOK_EVERY)


async def test_the_exporter_serves_the_ids_of_the_nodes_devices(platform: Cluster):
    pods = f"/api/v1/namespaces/kube-system/pods?labelSelector=app%3Dnvidia-dcgm-exporter&fieldSelector=spec.nodeName%3D{NODE}"
    async with platform.api() as api:

        async def served() -> str:
            (pod,) = (await api.get(pods))["items"]
            assert pod["metadata"]["name"].startswith(EXPORTER)
            path = f"/api/v1/namespaces/kube-system/pods/{pod['metadata']['name']}:9400/proxy/cgi-bin/metrics"
            return str((await api.get(path))["text"])

        text = await until(served)
    devices = DeviceTable(platform.layout.folder / "nodes" / NODE)
    expected = sorted(each.id for each in devices.slots())
    assert len(expected) == 2
    for metric in ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"):
        assert sorted(re.findall(rf'^{metric}{{UUID="([^"]+)"', text, re.MULTILINE)) == expected
