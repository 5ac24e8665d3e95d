"""The flavors a cluster starts with: made once, and never again, whatever becomes of them."""

import pytest

from neorion.devservers.controllers import DefaultFlavors
from neorion.devservers.model import DEFAULT_FLAVORS
from neorion.devservers.model.kube_types import DEVSERVERFLAVORS
from neorion.keel.base import Conflict
from neorion.keel.clock import SystemClock
from neorion.keel.kube import MergePatch
from neorion.keel.kube.control import UNFENCED
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

pytestmark = pytest.mark.anyio


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster(SystemClock())


@pytest.fixture
def api(cluster: MemoryCluster) -> MemoryApi:
    return MemoryApi(cluster, SystemClock())


async def names(api: MemoryApi) -> set[str]:
    return {flavor.meta.name for flavor in (await api.list(DEVSERVERFLAVORS)).items}


async def test_they_are_made_once_and_what_becomes_of_them_stays(cluster: MemoryCluster, api: MemoryApi):
    await DefaultFlavors(api, "devservers-system", UNFENCED).found()
    assert await names(api) == set(DEFAULT_FLAVORS)
    await api.patch(DEVSERVERFLAVORS, "cpu-small", MergePatch({"spec": {"price": {"perHour": "7"}}}))
    await api.delete(DEVSERVERFLAVORS, "cpu-large")
    writes = cluster.writes.total()
    await DefaultFlavors(api, "devservers-system", UNFENCED).found()
    assert cluster.writes.total() == writes
    assert await names(api) == set(DEFAULT_FLAVORS) - {"cpu-large"}
    price = (await api.get(DEVSERVERFLAVORS, "cpu-small")).spec.price
    assert price is not None
    assert price.per_hour == "7"


async def test_one_that_was_there_before_is_left_as_it_is(api: MemoryApi):
    mine = {"metadata": {"name": "cpu-small"}, "spec": {"resources": {"requests": {"cpu": "64"}}}}
    await api.create(DEVSERVERFLAVORS, mine)
    await DefaultFlavors(api, "devservers-system", UNFENCED).found()
    assert await names(api) == set(DEFAULT_FLAVORS)
    assert (await api.get(DEVSERVERFLAVORS, "cpu-small")).spec.resources.requests == {"cpu": "64"}


async def test_nobody_without_the_lease_makes_any(api: MemoryApi):
    class Deposed:
        def check(self) -> None:
            raise Conflict("kube.not_leader", "Another holds the lease.")

    with pytest.raises(Conflict):
        await DefaultFlavors(api, "devservers-system", Deposed()).found()
    assert await names(api) == set()
