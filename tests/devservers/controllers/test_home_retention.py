"""A home goes on its day, and only when no server has anything to do with it."""

from typing import Any

import pytest

from neorion.devservers.controllers import ClusterCache, HomeController, Writers
from neorion.devservers.decide import FINALIZER, HOME_DELETE_AFTER, HOME_LABEL, home_name
from neorion.devservers.model.kube_types import DEVSERVERS
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube import ObjectKey
from neorion.keel.kube.control import UNFENCED, Applier, EventRecorder, InformerFactory
from neorion.keel.kube.core import CLAIM
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

pytestmark = pytest.mark.anyio

KEY = ObjectKey("dev-ann", "mydev")


@pytest.mark.parametrize(
    ("server", "day", "homes"),
    [
        ("gone", "2020-01-01T00:00:00+00:00", 0),
        ("gone", "2020-01-01", 0),
        ("gone", "3020-01-01", 1),
        ("gone", "never", 1),
        ("there", "2020-01-01T00:00:00+00:00", 1),
        ("leaving", "2020-01-01T00:00:00+00:00", 1),
        ("unreadable", "2020-01-01T00:00:00+00:00", 1),
    ],
)
async def test_a_home_past_its_day_goes_unless_a_server_may_still_take_it_or_mark_it(
    server: str, day: str, homes: int
):
    clock = SystemClock()
    api = MemoryApi(MemoryCluster(clock), clock, "operator")
    informers = InformerFactory(api, clock, system_rng())
    writers = Writers(
        api, Applier(api, "devservers", informers), EventRecorder(api, "any", "any", clock), UNFENCED
    )
    cache = ClusterCache(informers)
    reconciler = HomeController(cache, writers, clock)
    home: dict[str, Any] = {
        "name": home_name(KEY.name),
        "namespace": KEY.namespace,
        "labels": {HOME_LABEL: KEY.name},
        "annotations": {HOME_DELETE_AFTER: day},
    }
    kept = await api.create(CLAIM, {"metadata": home, "spec": {}})
    informers.observe(CLAIM, kept)
    if server != "gone":
        meta = {"name": KEY.name, "namespace": KEY.namespace, "finalizers": [FINALIZER]}
        there = await api.create(DEVSERVERS, {"metadata": meta, "spec": {"flavor": "cpu-small"}})
        if server == "leaving":
            await api.delete(DEVSERVERS, KEY.name, KEY.namespace)
            there = await api.get(DEVSERVERS, KEY.name, KEY.namespace)
        if server == "unreadable":
            cache.servers.mark_unreadable(there.meta, "It was written by a newer program.")
        else:
            informers.observe(DEVSERVERS, there)

    await reconciler.reconcile(kept.meta.key)
    assert len((await api.list(CLAIM)).items) == homes
