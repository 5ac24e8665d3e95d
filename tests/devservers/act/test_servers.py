"""One server brought to what was decided about it, by as few writes as that takes."""

import pytest

from neorion.devservers.act import Hands, Mirrors, Servers
from neorion.devservers.model import Phase
from neorion.devservers.model.objects import FLAVORS, SERVERS
from neorion.devservers.testing import SETTINGS, a_flavor
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube import Key
from neorion.keel.kube.control import UNFENCED, Applier, Informers, Recorder
from neorion.keel.kube.core import CLAIM
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

pytestmark = pytest.mark.anyio

KEY = Key("dev-ann", "mydev")


async def test_a_new_server_tells_of_itself_once_what_it_is_made_of_is_there():
    clock = SystemClock()
    cluster = MemoryCluster(clock)
    api = MemoryApi(cluster, clock, "operator")
    informers = Informers(api, clock, system_rng())
    hands = Hands(api, Applier(api, "devservers", informers), Recorder(api, "any", "any", clock), UNFENCED)
    servers = Servers(Mirrors(informers), hands, SETTINGS, clock)
    informers.observe(FLAVORS, await api.create(FLAVORS, a_flavor()))
    wanted = {"metadata": {"name": KEY.name, "namespace": KEY.namespace}, "spec": {"flavor": "cpu-small"}}
    informers.observe(SERVERS, await api.create(SERVERS, wanted))
    before = cluster.writes.total()

    assert await servers.reconcile(KEY) == Duration(0)
    made = await api.get(SERVERS, *reversed(KEY))
    assert made.status.phase is None
    # The finalizer, the home, the scripts, the Service and the Deployment.
    assert cluster.writes.total() - before == 5
    await api.get(CLAIM, f"{KEY.name}-home", KEY.namespace)

    assert await servers.reconcile(KEY) != Duration(0)
    made = await api.get(SERVERS, *reversed(KEY))
    assert made.status.phase is Phase.PENDING
    assert cluster.writes.total() - before == 6
    await servers.reconcile(KEY)
    assert cluster.writes.total() - before == 6
