"""The hand that writes on nodes: it asks for nothing that is so already, and makes no node that is gone."""

from typing import Any

import pytest

from neorion.capacity.node import marks
from neorion.keel.base import Conflict, NotFound
from neorion.keel.clock import SystemClock
from neorion.keel.kube.core import NODE
from neorion.keel.kube.testing import MemoryApi, MemoryCluster
from neorion.navarch.adapters.kube.node_marks import signs
from neorion.navarch.adapters.kube.node_writer import NodeWriter
from neorion.navarch.model import NodeState
from neorion.navarch.testing import node

pytestmark = pytest.mark.anyio


class Door(MemoryApi):
    """Counts requests: a server that is asked in vain has work with it all the same."""

    asked = 0

    async def apply(self, *args: Any, **named: Any) -> Any:
        self.asked += 1
        return await super().apply(*args, **named)

    async def patch(self, *args: Any, **named: Any) -> Any:
        self.asked += 1
        return await super().patch(*args, **named)


@pytest.fixture
def api() -> Door:
    clock = SystemClock()
    return Door(MemoryCluster(clock), clock, "navarch")


@pytest.mark.parametrize("state", [NodeState.ACTIVE, NodeState.CORDONED, NodeState.DRAINED])
async def test_what_is_so_already_is_not_asked_for(api: Door, state: NodeState):
    hand, wanted = (
        NodeWriter(api, SystemClock()),
        signs(node(state=state, why="XID 79"), {"workload": "training"}),
    )
    written = await hand.write(await api.create(NODE, {"metadata": {"name": "gpu-1"}}), wanted)
    assert written.meta.labels["workload"] == "training"
    before = api.asked
    await hand.write(await api.get(NODE, "gpu-1"), wanted)
    assert api.asked == before


async def test_a_node_that_is_gone_is_not_made_again(api: Door):
    kube = await api.create(NODE, {"metadata": {"name": "gpu-1"}})
    await api.delete(NODE, "gpu-1")
    with pytest.raises((Conflict, NotFound)):
        await NodeWriter(api, SystemClock()).write(kube, signs(node(state=NodeState.CORDONED), {}))
    with pytest.raises(NotFound):
        await api.get(NODE, "gpu-1")


async def test_when_it_changed_is_told_only_when_it_did(api: Door):
    hand = NodeWriter(api, SystemClock())
    first = node(state=NodeState.DRAINING, why="XID 79")
    kube = await hand.write(await api.create(NODE, {"metadata": {"name": "gpu-1"}}), signs(first, {}))
    again = await hand.write(kube, signs(first, {}, "2 pods are left"))
    (before,) = [one for one in kube.status.conditions if one.type == marks.DRAIN_IN_PROGRESS]
    (after,) = [one for one in again.status.conditions if one.type == marks.DRAIN_IN_PROGRESS]
    assert (after.message, after.changed) == ("2 pods are left", before.changed)
