"""One server brought to what was decided about it, by as few writes as that takes."""

from dataclasses import replace
from typing import Any, TypeVar

import pytest
from msgspec import structs

from neorion.devservers.adapters.host_keys import HostKeyGenerator
from neorion.devservers.controllers import ClusterCache, DevServerController, Writers
from neorion.devservers.decide import SERVER_LABEL, STOPPED_BECAUSE
from neorion.devservers.model import ConditionType, Phase, StopReason
from neorion.devservers.model.kube_types import DEPLOYMENTS, DEVSERVERFLAVORS, DEVSERVERS
from neorion.devservers.testing import SETTINGS, a_flavor, a_pod
from neorion.keel.base import Conflict, Duration, QuotaExceeded
from neorion.keel.clock import SystemClock, VirtualClock, system_rng
from neorion.keel.kube import InvalidObject, Kind, MergePatch, ObjectKey
from neorion.keel.kube.control import UNFENCED, Applier, ContestedObject, EventRecorder, InformerFactory
from neorion.keel.kube.control.contested import FREE_REPAIRS
from neorion.keel.kube.core import CLAIM, POD, SECRET, SERVICE
from neorion.keel.kube.interface import Patch
from neorion.keel.kube.kinds import Manifest
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

pytestmark = pytest.mark.anyio

KEY = ObjectKey("dev-ann", "mydev")
T = TypeVar("T")


async def test_a_new_server_tells_of_itself_once_what_it_is_made_of_is_there():
    clock = SystemClock()
    cluster = MemoryCluster(clock)
    api = MemoryApi(cluster, clock, "operator")
    informers = InformerFactory(api, clock, system_rng())
    writers = Writers(
        api, Applier(api, "devservers", informers), EventRecorder(api, "any", "any", clock), UNFENCED
    )
    servers = DevServerController(ClusterCache(informers), writers, SETTINGS, clock)
    informers.observe(DEVSERVERFLAVORS, await api.create(DEVSERVERFLAVORS, a_flavor()))
    wanted = {"metadata": {"name": KEY.name, "namespace": KEY.namespace}, "spec": {"flavor": "cpu-small"}}
    informers.observe(DEVSERVERS, await api.create(DEVSERVERS, wanted))
    before = cluster.writes.total()

    assert await servers.reconcile(KEY) == Duration(0)
    made = await api.get(DEVSERVERS, *reversed(KEY))
    assert made.status.phase is None
    # The finalizer, the home, the scripts, the Service and the Deployment.
    assert cluster.writes.total() - before == 5
    await api.get(CLAIM, f"{KEY.name}-home", KEY.namespace)

    assert await servers.reconcile(KEY) != Duration(0)
    made = await api.get(DEVSERVERS, *reversed(KEY))
    assert made.status.phase is Phase.PENDING
    assert cluster.writes.total() - before == 6
    await servers.reconcile(KEY)
    assert cluster.writes.total() - before == 6


FULL = "exceeded quota: dev-user, requested: {0}=1, used: {0}=5, limited: {0}=5"


class Miser(MemoryApi):
    """A cluster whose quota has no room for one kind of thing."""

    scarce: Kind[Any]

    async def apply(
        self, kind: Kind[T], thing: T | Manifest, manager: str, *, force: bool = False, subresource: str = ""
    ) -> T:
        self._grudge(kind)
        return await super().apply(kind, thing, manager, force=force, subresource=subresource)

    async def create(self, kind: Kind[T], thing: T | Manifest) -> T:
        self._grudge(kind)
        return await super().create(kind, thing)

    def _grudge(self, kind: Kind[Any]) -> None:
        if kind.name == self.scarce.name:
            told = f'{kind.plural} "mydev" is forbidden: {FULL.format(kind.plural)}'
            raise QuotaExceeded("kube.quota", told, hint="")


@pytest.mark.parametrize("scarce", [CLAIM, SERVICE, SECRET], ids=lambda kind: kind.plural)
async def test_a_refusal_is_told_to_the_user_and_the_server_still_ends_at_its_time(scarce: Kind[Any]):
    clock = SystemClock()
    api = Miser(MemoryCluster(clock), clock, "operator")
    api.scarce = scarce
    informers = InformerFactory(api, clock, system_rng())
    applier, recorder = Applier(api, "devservers", informers), EventRecorder(api, "any", "any", clock)
    writers = Writers(api, applier, recorder, UNFENCED, keys=HostKeyGenerator())
    servers = DevServerController(
        ClusterCache(informers), writers, replace(SETTINGS, tools_image="tools"), clock
    )
    informers.observe(DEVSERVERFLAVORS, await api.create(DEVSERVERFLAVORS, a_flavor()))
    spec = {"flavor": "cpu-small", "lifecycle": {"expirationTime": "2020-01-01T00:00:00Z"}}
    wanted = {"metadata": {"name": KEY.name, "namespace": KEY.namespace}, "spec": spec}
    informers.observe(DEVSERVERS, await api.create(DEVSERVERS, wanted))

    # A quota is a user's matter, and no failure of the operator.
    await servers.reconcile(KEY)
    told = await api.get(DEVSERVERS, *reversed(KEY))
    of = scarce.plural
    assert (
        told.status.message
        == f'The quota "dev-user" has no room: {of}=1 is asked for, {of}=5 is used, {of}=5 is the most.'
    )
    assert (told.status.observed_generation, told.spec.running) == (1, False)


class Stiff(MemoryApi):
    """A cluster that resizes no pod."""

    async def patch(
        self, kind: Kind[T], name: str, patch: Patch, namespace: str = "", subresource: str = ""
    ) -> T:
        if subresource == "resize":
            raise InvalidObject('Pod "mydev-x" is invalid: spec: Forbidden: its node cannot do that')
        return await super().patch(kind, name, patch, namespace, subresource)


async def test_a_resize_that_is_refused_is_told_and_the_server_goes_on():
    clock = SystemClock()
    api = Stiff(MemoryCluster(clock), clock, "operator")
    informers = InformerFactory(api, clock, system_rng())
    writers = Writers(
        api, Applier(api, "devservers", informers), EventRecorder(api, "any", "any", clock), UNFENCED
    )
    servers = DevServerController(ClusterCache(informers), writers, SETTINGS, clock)
    informers.observe(DEVSERVERFLAVORS, await api.create(DEVSERVERFLAVORS, a_flavor()))
    wanted = {"metadata": {"name": KEY.name, "namespace": KEY.namespace}, "spec": {"flavor": "cpu-small"}}
    informers.observe(DEVSERVERS, await api.create(DEVSERVERS, wanted))
    await servers.reconcile(KEY)
    pod = a_pod()
    marked = structs.replace(pod, meta=structs.replace(pod.meta, labels={SERVER_LABEL: KEY.name}))
    informers.observe(POD, structs.replace(await api.create(POD, marked), status=pod.status))
    more = MergePatch({"spec": {"resources": {"requests": {"cpu": "2"}}}})
    informers.observe(DEVSERVERFLAVORS, await api.patch(DEVSERVERFLAVORS, "cpu-small", more))

    with pytest.raises(InvalidObject):
        await servers.reconcile(KEY)
    told = (await api.get(DEVSERVERS, *reversed(KEY))).status
    assert (told.phase, told.message) == (
        Phase.RUNNING,
        "The cluster refuses what the server needs: spec: Forbidden: its node cannot do that.",
    )


@pytest.mark.parametrize(
    ("spec", "wish"),
    [
        (
            {"lifecycle": {"timeToLive": "1h", "onExpire": "Delete", "autoShutdown": False, "warnings": []}},
            {"lifecycle": {"extendedUntil": "2026-02-01T00:00:00Z"}},
        ),
        ({"running": False, "lifecycle": {"retention": "1h"}}, {"running": True}),
    ],
    ids=["extended", "started"],
)
async def test_a_server_is_not_deleted_by_whoever_has_not_heard_of_its_users_last_wish(
    spec: dict[str, Any], wish: dict[str, Any]
):
    clock = VirtualClock(lambda: 0.0)
    api = MemoryApi(MemoryCluster(clock), clock, "operator")
    informers = InformerFactory(api, clock, system_rng())
    writers = Writers(
        api, Applier(api, "devservers", informers), EventRecorder(api, "any", "any", clock), UNFENCED
    )
    servers = DevServerController(ClusterCache(informers), writers, SETTINGS, clock)
    informers.observe(DEVSERVERFLAVORS, await api.create(DEVSERVERFLAVORS, a_flavor()))
    over = {} if spec.get("running", True) else {STOPPED_BECAUSE: StopReason.EXPIRED.value}
    meta = {"name": KEY.name, "namespace": KEY.namespace, "annotations": over}
    made = {"metadata": meta, "spec": {"flavor": "cpu-small", **spec}}
    informers.observe(DEVSERVERS, await api.create(DEVSERVERS, made))
    while await servers.reconcile(KEY) == Duration(0):
        pass
    clock.jump(3601)
    await api.patch(DEVSERVERS, KEY.name, MergePatch({"spec": wish}), KEY.namespace)

    with pytest.raises(Conflict):
        await servers.reconcile(KEY)
    assert (await api.get(DEVSERVERS, *reversed(KEY))).meta.deleted is None


@pytest.mark.fault(51)
async def test_a_deployment_that_another_controller_changes_is_repaired_rarely_and_the_server_says_so():
    now = 0.0
    clock = VirtualClock(lambda: now)
    api = MemoryApi(MemoryCluster(clock), clock, "operator")
    informers = InformerFactory(api, clock, system_rng())
    writers = Writers(
        api, Applier(api, "devservers", informers), EventRecorder(api, "any", "any", clock), UNFENCED
    )
    servers = DevServerController(ClusterCache(informers), writers, SETTINGS, clock)
    informers.observe(DEVSERVERFLAVORS, await api.create(DEVSERVERFLAVORS, a_flavor()))
    wanted = {"metadata": {"name": KEY.name, "namespace": KEY.namespace}, "spec": {"flavor": "cpu-small"}}
    informers.observe(DEVSERVERS, await api.create(DEVSERVERS, wanted))
    await servers.reconcile(KEY)

    async def change_back() -> None:
        patch = MergePatch({"spec": {"replicas": 0}})
        informers.observe(DEPLOYMENTS, await api.patch(DEPLOYMENTS, KEY.name, patch, KEY.namespace))

    async def replicas() -> int | None:
        return (await api.get(DEPLOYMENTS, *reversed(KEY))).spec.replicas

    for _ in range(FREE_REPAIRS + 1):
        await change_back()
        await servers.reconcile(KEY)
        assert await replicas() == 1
    await change_back()
    with pytest.raises(ContestedObject) as contested:
        await servers.reconcile(KEY)
    assert await replicas() == 0
    told = await api.get(DEVSERVERS, *reversed(KEY))
    (condition,) = [one for one in told.status.conditions if one.type is ConditionType.CONTESTED]
    assert (condition.status, condition.message) == (
        "True",
        "Another writer changes deployments.apps mydev after each repair.",
    )

    assert contested.value.after
    now += contested.value.after.seconds
    await servers.reconcile(KEY)
    assert await replicas() == 1
    told = await api.get(DEVSERVERS, *reversed(KEY))
    assert ConditionType.CONTESTED not in [one.type for one in told.status.conditions]
