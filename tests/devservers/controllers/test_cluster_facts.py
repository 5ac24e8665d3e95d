"""What a change depends on, as it is looked up."""

from dataclasses import replace as changed
from typing import TypeVar

import pytest
from msgspec.structs import replace

from neorion.devservers.controllers.cluster_facts import survey
from neorion.devservers.decide import Observed
from neorion.devservers.model.kube_types import STORAGE_CLASSES, VOLUMES
from neorion.devservers.testing import a_claim, a_server
from neorion.keel.base import Denied
from neorion.keel.clock import SystemClock
from neorion.keel.kube import Kind, ListResult, Selector
from neorion.keel.kube.core import NODE, RESOURCE_QUOTA
from neorion.keel.kube.core.core_v1 import PersistentVolumeClaimSpec
from neorion.keel.kube.interface import ALL
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

pytestmark = pytest.mark.anyio

T = TypeVar("T")
HOME = replace(a_claim(), spec=PersistentVolumeClaimSpec(storage_class_name="fast", volume_name="pv-1"))
SEEN = Observed(server=a_server(), home=HOME)


@pytest.fixture
def api() -> MemoryApi:
    clock = SystemClock()
    return MemoryApi(MemoryCluster(clock), clock)


async def test_the_volume_the_nodes_the_quotas_of_the_namespace_and_the_class_are_looked_up(api: MemoryApi):
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    await api.create(VOLUMES, {"metadata": {"name": "pv-1"}, "spec": {"nodeAffinity": affinity}})
    await api.create(NODE, {"metadata": {"name": "n1"}})
    for place in ("dev-ann", "dev-ben"):
        await api.create(RESOURCE_QUOTA, {"metadata": {"name": f"of-{place}", "namespace": place}})
    await api.create(STORAGE_CLASSES, {"metadata": {"name": "fast"}, "allowVolumeExpansion": True})
    found = await survey(api, SEEN)
    assert found is not None
    assert found.volume == await api.get(VOLUMES, "pv-1")
    assert [node.meta.name for node in found.nodes] == ["n1"]
    assert [quota.meta.name for quota in found.quotas] == ["of-dev-ann"]
    assert found.home_grows


async def test_what_is_not_there_ties_nobody_down_and_grows_nothing(api: MemoryApi):
    for seen in (SEEN, changed(SEEN, home=None)):
        found = await survey(api, seen)
        assert found is not None
        assert (found.volume, found.nodes, found.quotas, found.home_grows) == (None, (), (), False)


async def test_who_may_not_look_says_so_instead_of_failing():
    class Strict(MemoryApi):
        async def list(self, kind: Kind[T], namespace: str = "", select: Selector = ALL) -> ListResult[T]:
            raise Denied("kube.forbidden", f"{kind.name} of {namespace} is not for you, {select}.")

    clock = SystemClock()
    assert await survey(Strict(MemoryCluster(clock), clock), SEEN) is None
