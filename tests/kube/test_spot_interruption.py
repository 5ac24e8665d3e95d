"""A spot machine is taken back, as Karpenter does it: by the eviction of its Pods."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from neorion.devservers.model import Phase
from neorion.keel.kube import MergePatch
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import NODE, POD
from tests.kube.dev_room import Room, operating

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]

SPOT = "karpenter.sh/capacity-type"
# The Pod ends when the test says so, as it does on a node whose processes take their time.
HELD = "test.neorion.dev/held"


@pytest.fixture
async def spot_node(fleet_api: Client) -> AsyncGenerator[str]:
    [*_, node] = (await fleet_api.list(NODE)).items
    await fleet_api.patch(NODE, node.meta.name, MergePatch({"metadata": {"labels": {SPOT: "spot"}}}))
    yield node.meta.name
    await fleet_api.patch(NODE, node.meta.name, MergePatch({"metadata": {"labels": {SPOT: None}}}))


async def hold(client: Client, room: Room, name: str, *, held: bool) -> None:
    finalizers = MergePatch({"metadata": {"finalizers": [HELD] if held else None}})
    await client.patch(POD, name, finalizers, room.namespace)


async def test_a_server_stops_with_its_home_and_starts_on_another_machine(
    fleet_api: Client, room: Room, spot_node: str
):
    spec: dict[str, Any] = {"nodeSelector": {SPOT: "spot"}, "tolerations": [{"operator": "Exists"}]}
    async with operating(fleet_api, room.namespace):
        flavor = await room.flavor("spot", **spec)
        await room.create("box", flavor)
        await room.until_phase("box", Phase.RUNNING)
        home, pod = room.home_uid("box"), room.pod("box")
        assert pod.spec.node_name == spot_node

        await hold(fleet_api, room, pod.meta.name, held=True)
        await fleet_api.evict(pod.meta.name, room.namespace)
        stopping = await room.until_phase("box", Phase.STOPPING)
        assert stopping.spec.running is False
        await room.until(lambda: room.told("box", "Interrupted"))
        await hold(fleet_api, room, pod.meta.name, held=False)
        stopped = await room.until_phase("box", Phase.STOPPED)
        assert stopped.status.stop_reason == "Interrupted"
        assert room.home_uid("box") == home

        await room.change("box", running=True)
        again = await room.until_phase("box", Phase.RUNNING)
        assert again.status.stop_reason is None
        assert room.home_uid("box") == home
        assert room.pod("box").meta.uid != pod.meta.uid
        await room.delete("box")
        await room.until_gone("box")
