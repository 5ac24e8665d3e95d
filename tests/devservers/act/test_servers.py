"""One server brought to what was decided about it, by as few writes as that takes."""

from typing import TypeVar

import pytest

from neorion.devservers.act import Hands, Mirrors, Servers
from neorion.devservers.model import Phase
from neorion.devservers.model.objects import FLAVORS, SERVERS
from neorion.devservers.testing import SETTINGS, a_flavor
from neorion.keel.base import Duration, QuotaExceeded
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube import Key, Kind
from neorion.keel.kube.control import UNFENCED, Applier, Informers, Recorder
from neorion.keel.kube.core import CLAIM
from neorion.keel.kube.kinds import Manifest
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

pytestmark = pytest.mark.anyio

KEY = Key("dev-ann", "mydev")
T = TypeVar("T")


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


class Miser(MemoryApi):
    """A cluster whose quota has no room for a home."""

    async def apply(
        self, kind: Kind[T], thing: T | Manifest, manager: str, *, force: bool = False, subresource: str = ""
    ) -> T:
        if kind is CLAIM:
            raise QuotaExceeded(
                "kube.quota",
                'persistentvolumeclaims "mydev-home" is forbidden: exceeded quota: dev-user, requested:'
                " requests.storage=100Gi, used: requests.storage=2Ti, limited: requests.storage=2Ti",
                hint="",
            )
        return await super().apply(kind, thing, manager, force=force, subresource=subresource)


async def test_a_refusal_is_told_to_the_user_and_the_server_still_ends_at_its_time():
    clock = SystemClock()
    api = Miser(MemoryCluster(clock), clock, "operator")
    informers = Informers(api, clock, system_rng())
    hands = Hands(api, Applier(api, "devservers", informers), Recorder(api, "any", "any", clock), UNFENCED)
    servers = Servers(Mirrors(informers), hands, SETTINGS, clock)
    informers.observe(FLAVORS, await api.create(FLAVORS, a_flavor()))
    spec = {"flavor": "cpu-small", "lifecycle": {"expirationTime": "2020-01-01T00:00:00Z"}}
    wanted = {"metadata": {"name": KEY.name, "namespace": KEY.namespace}, "spec": spec}
    informers.observe(SERVERS, await api.create(SERVERS, wanted))

    # It is tried again, later and later: that is what the error is for.
    with pytest.raises(QuotaExceeded):
        await servers.reconcile(KEY)
    told = await api.get(SERVERS, *reversed(KEY))
    assert told.status.message == (
        'The quota "dev-user" has no room: requests.storage=100Gi is asked for, requests.storage=2Ti is used,'
        " requests.storage=2Ti is the most."
    )
    assert (told.status.observed_generation, told.spec.running) == (1, False)
