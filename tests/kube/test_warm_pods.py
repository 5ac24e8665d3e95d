"""Warm Pods on a real scheduler: a server takes the place of one at once, and another one is made."""

from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from neorion.devservers.decide.warm_pods import WARM_LABEL, warm_label
from neorion.devservers.model import Phase
from neorion.devservers.model.kube_types import DEPLOYMENTS, DEVSERVERFLAVORS
from neorion.devservers.model.tenancy import WARM_NAMESPACE
from neorion.keel.base import Duration
from neorion.keel.kube import Kind, KubeObject, MergePatch, Selector
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import NAMESPACE, NODE, POD, Pod
from tests.kube.dev_room import CLOCK, PATIENCE_S, Room, operating
from tests.kube.guard_patience import allowed

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]

MANIFEST = Path(__file__).parent.parent.parent / "infra/devservers/base/warm.yaml"
PRIORITY_CLASSES = Kind(
    KubeObject, "PriorityClass", "priorityclasses", "scheduling.k8s.io", namespaced=False
).raw
MOMENT = Duration.of(ms=50)


@pytest.fixture
async def warm_place(fleet_api: Client) -> None:
    """The namespace and the priority, as an installation makes them."""
    kinds = {"PriorityClass": PRIORITY_CLASSES, "Namespace": NAMESPACE.raw}
    for body in yaml.safe_load_all(MANIFEST.read_text()):
        if (kind := kinds.get(body["kind"])) is not None:
            await allowed(lambda kind=kind, body=body: fleet_api.apply(kind, body, "test"))


async def warm_pods(client: Client, flavor: str) -> list[Pod]:
    chosen = Selector(labels=f"{WARM_LABEL}={warm_label(flavor)}")
    return [one for one in (await client.list(POD, WARM_NAMESPACE, chosen)).items if one.meta.deleted is None]


async def until_warm(client: Client, flavor: str, placed: list[bool]) -> list[Pod]:
    """Returns when the warm Pods have nodes, or wait for them, in this way."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            found = await warm_pods(client, flavor)
            if sorted(bool(one.spec.node_name) for one in found) == placed:
                return found
            await CLOCK.sleep(MOMENT)


@pytest.mark.usefixtures("warm_place")
async def test_a_server_takes_the_place_of_a_warm_pod_which_is_replaced(fleet_api: Client, room: Room):
    [node, *_] = (await fleet_api.list(NODE)).items
    half = int(node.status.allocatable["cpu"]) * 6 // 10
    selector = {"kubernetes.io/hostname": node.meta.name}
    taints: list[Any] = [{"operator": "Exists"}]
    async with operating(fleet_api, room.namespace):
        spec = {"nodeSelector": selector, "tolerations": taints, "warm": [{"size": 1}]}
        flavor = await room.flavor("warm", str(half), **spec)
        [warm] = await until_warm(fleet_api, flavor, [True])
        assert warm.spec.node_name == node.meta.name

        # The machine has room for one of the two.
        await room.create("box", flavor)
        await room.until_phase("box", Phase.RUNNING)
        assert room.pod("box").spec.node_name == node.meta.name
        [waiting] = await until_warm(fleet_api, flavor, [False])
        assert waiting.meta.uid != warm.meta.uid

        # It is warm again as soon as there is a machine.
        await room.change("box", running=False)
        await until_warm(fleet_api, flavor, [True])
        await fleet_api.patch(DEVSERVERFLAVORS, flavor, MergePatch({"spec": {"warm": []}}))
        await until_warm(fleet_api, flavor, [])
        assert (await fleet_api.list(DEPLOYMENTS, WARM_NAMESPACE)).items == []
        await room.delete("box")
        await room.until_gone("box")
