"""Operators of development servers, the controllers and kubelets around them, and people with changing wishes."""

import json
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Any, Final

import anyio

from neorion.devservers.app import OperatorOptions, build
from neorion.devservers.app.operator import LEASE as LEASE_NAME
from neorion.devservers.decide import (
    HOME_DELETE_AFTER,
    HOME_LABEL,
    SERVER_LABEL,
    OperatorSettings,
    home_name,
)
from neorion.devservers.decide.names import rank_home_name
from neorion.devservers.model import Phase
from neorion.devservers.model.kube_types import DEPLOYMENTS, DEVSERVERFLAVORS, DEVSERVERS, STATEFUL_SETS
from neorion.devservers.testing import SETTINGS
from neorion.keel.base import Duration, Error, Finding, Severity
from neorion.keel.kube import DeleteOptions, Kind, KubeApi, MergePatch, ObjectKey
from neorion.keel.kube.core import CLAIM, NODE, POD
from neorion.keel.kube.testing import MemoryApi, WriteRequest
from neorion.keel.sim import Host, LinkConditions, World
from tests.keel.kube.control.widgets import TENURE
from tests.sim.kube_world import REPLICAS, Truth, WiredApi, api_server

HOME = "devservers-system"
USERS: Final = "dev-ann"
NAMES: Final = ("a", "b", "c", "d")
# Distributed servers of two machines.
GANGS: Final = ("e", "f")
RANKS: Final = 2
# Differ in more than CPU and memory: the double does not serve the resize of a pod.
ZONES: Final = ("north", "south")
# As the kubelet says when a pod has ended.
AT_ONCE: Final = DeleteOptions(grace=Duration.of(seconds=0))
# Clocks of replicas are set wrong by no more than this.
SKEW: Final = Duration.of(seconds=10)
# How long an expired server is kept, and how long a home that lost its server: short, for what passes here is idle time.
SERVER_KEPT_S: Final = 10
HOME_KEPT_S: Final = 30
LENT_S_MAX: Final = 25
# After the last wish: a server that was lent expires, is removed, and its home goes, all by clocks set wrong.
CALM_S: Final = LENT_S_MAX + SERVER_KEPT_S + HOME_KEPT_S + 2 * SKEW.seconds


class Harbour(Truth):
    """The API server, which also sees to it that no home goes before its day, and that its server's end is long enough before."""

    def __init__(self, world: World) -> None:
        super().__init__(world, ObjectKey(HOME, LEASE_NAME))
        self._world = world

    def admit(self, request: WriteRequest) -> None:
        super().admit(request)
        if request.resource != CLAIM.resource:
            return
        before, after = _day(request.before), _day(request.after)
        if request.verb == "delete":
            if before is None or before > self._about(SKEW.seconds):
                self._accuse(request, f"deletes a home that is kept until {before or 'somebody says so'}")
        elif after is not None and after != before and after < self._promised(request):
            self._accuse(request, f"keeps a home only until {after}")

    def _promised(self, request: WriteRequest) -> str:
        name = request.after["metadata"]["labels"][HOME_LABEL] if request.after else ""
        server = self.cluster.entries(DEVSERVERS).get(ObjectKey(request.key.namespace, name))
        if server is None or "deletionTimestamp" not in server.body["metadata"]:
            return self._about(HOME_KEPT_S - SKEW.seconds - 1)
        deleted = datetime.fromisoformat(server.body["metadata"]["deletionTimestamp"])
        return (deleted + timedelta(seconds=HOME_KEPT_S)).isoformat()[:19]

    def _about(self, seconds: float) -> str:
        return str(self._world.clock.now() + Duration.of(seconds=seconds))[:19]

    def _accuse(self, request: WriteRequest, deed: str) -> None:
        sentence = f"{request.user} {deed}"
        self.found.append(Finding(Severity.ERROR, "devservers.home_lost", str(request.key), sentence))


def _day(home: dict[str, Any] | None) -> str | None:
    """To the second, as texts that can be compared."""
    day = home["metadata"].get("annotations", {}).get(HOME_DELETE_AFTER) if home else None
    return day[:19] if day else None


async def operator(host: Host, api: KubeApi, identity: str, settings: OperatorSettings = SETTINGS) -> None:
    plan = OperatorOptions(settings, HOME, identity, tenure=TENURE)
    await build(api, plan, host.clock, host.rng).run(anyio.Event())


async def replica(
    host: Host, world: World, truth: Harbour, boots: "count[int]", settings: OperatorSettings
) -> None:
    identity = f"{host.name}-{next(boots)}"
    await operator(host, WiredApi(world, truth.cluster, host, identity), identity, settings)


class Machinery:
    """What a cluster does by itself: binds claims, runs the pods of Deployments, collects what nobody owns."""

    def __init__(self, world: World, truth: Harbour) -> None:
        self._world = world
        self._cluster = truth.cluster
        self._api = MemoryApi(truth.cluster, world.clock, "machinery")
        self._pods = count(1)

    async def run(self) -> None:
        """Looks again at whatever was written, and takes its time."""
        while True:
            await self._cluster.history.news()
            await self._world.sleep(0.5)
            await self.turn()

    async def turn(self) -> None:
        for key, entry in sorted(self._cluster.entries(CLAIM).items()):
            if "status" not in entry.body:
                bound = MergePatch({"status": {"phase": "Bound"}})
                await self._api.patch(CLAIM, key.name, bound, key.namespace, "status")
        for key, entry in sorted(self._cluster.entries(DEPLOYMENTS).items()):
            await self._run_pods(key, entry.body)
            await self._tell(DEPLOYMENTS, key, entry.body)
        for key, entry in sorted(self._cluster.entries(STATEFUL_SETS).items()):
            await self._run_ranks(key, entry.body)
            await self._tell(STATEFUL_SETS, key, entry.body)
        self._cluster.collect()

    async def _run_pods(self, key: ObjectKey, body: dict[str, Any]) -> None:
        """As strategy Recreate does: the old one goes before the new one comes."""
        spec = body["spec"]
        wanted = json.dumps(spec["template"], sort_keys=True)
        pods = pods_of(self._cluster.entries(POD), key)
        stale = [
            pod for pod in pods if not spec["replicas"] or pod["metadata"]["annotations"]["of"] != wanted
        ]
        for pod in stale:
            await self._api.delete(POD, pod["metadata"]["name"], key.namespace, AT_ONCE)
        if spec["replicas"] and not pods:
            await self._start(key, body, wanted)

    async def _run_ranks(self, key: ObjectKey, body: dict[str, Any]) -> None:
        """As a StatefulSet with OnDelete does: Pods come and go with its size, and stay whatever its template says."""
        names = [f"{key.name}-{rank}" for rank in range(body["spec"]["replicas"])]
        there = {pod["metadata"]["name"] for pod in pods_of(self._cluster.entries(POD), key)}
        for name in sorted(there.difference(names)):
            await self._api.delete(POD, name, key.namespace, AT_ONCE)
        for name in (one for one in names if one not in there):
            await self._start(key, body, json.dumps(body["spec"]["template"], sort_keys=True), name)

    async def _tell(self, kind: Kind[Any], key: ObjectKey, body: dict[str, Any]) -> None:
        """The number of its Pods, and the version of which that is told."""
        pods = len(pods_of(self._cluster.entries(POD), key))
        told = {"observedGeneration": body["metadata"]["generation"], "replicas": pods}
        if body.get("status") != told and key in self._cluster.entries(kind):
            await self._api.patch(kind, key.name, MergePatch({"status": told}), key.namespace, "status")

    async def _start(self, key: ObjectKey, body: dict[str, Any], wanted: str, name: str = "") -> None:
        meta, template = body["metadata"], body["spec"]["template"]
        kind = "StatefulSet" if name else "Deployment"
        owner = {"apiVersion": "apps/v1", "kind": kind, "name": meta["name"], "uid": meta["uid"]}
        name = name or f"{key.name}-{next(self._pods)}"
        metadata = {
            "name": name,
            "namespace": key.namespace,
            "labels": template["metadata"]["labels"],
            "annotations": {"of": wanted},
            "ownerReferences": [owner],
        }
        place = {"nodeName": template["spec"]["nodeSelector"]["zone"]}
        await self._api.create(POD, {"metadata": metadata, "spec": {**template["spec"], **place}})
        running = {"name": "dev", "ready": True, "state": {"running": {}}}
        status = MergePatch({"status": {"phase": "Running", "containerStatuses": [running]}})
        await self._api.patch(POD, name, status, key.namespace, "status")


def pods_of(entries: dict[ObjectKey, Any], server: ObjectKey) -> list[dict[str, Any]]:
    return [
        entry.body
        for key, entry in sorted(entries.items())
        if key.namespace == server.namespace and entry.body["metadata"]["labels"][SERVER_LABEL] == server.name
    ]


def flavor(name: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    return {
        "metadata": {"name": name},
        "spec": {"resources": resources, "nodeSelector": {"zone": name}, "price": {"perHour": "1"}},
    }


def server(name: str, zone: str = ZONES[0], **lifecycle: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": USERS},
        "spec": {
            "flavor": zone,
            "home": {"retention": f"{HOME_KEPT_S}s"},
            "lifecycle": {"autoShutdown": False, "retention": f"{SERVER_KEPT_S}s", **lifecycle},
        },
    }


def gang(name: str, zone: str = ZONES[0], **lifecycle: Any) -> dict[str, Any]:
    made = server(name, zone, **lifecycle)
    made["spec"] |= {"mode": "distributed", "distributed": {"worldSize": RANKS, "backend": "gloo"}}
    return made


async def equip(api: MemoryApi) -> None:
    """A node and a flavor in each zone."""
    for zone in ZONES:
        room = {"allocatable": {"cpu": "64"}}
        await api.create(NODE, {"metadata": {"name": zone, "labels": {"zone": zone}}})
        await api.patch(NODE, zone, MergePatch({"status": room}), subresource="status")
        await api.create(DEVSERVERFLAVORS, flavor(zone))


async def people(world: World, api: MemoryApi, changes: int) -> None:
    await equip(api)
    for _ in range(changes):
        await world.sleep(world.rng.uniform(0, 2))
        name = world.rng.choice((*NAMES, *GANGS))
        act = world.rng.choice((_create, _create, _lend, _move, _switch, _delete, _vandalize, _lose))
        try:
            await act(world, api, name)
        except Error as error:
            world.note(f"people: {error.code}")


async def _create(world: World, api: MemoryApi, name: str) -> None:
    make = gang if name in GANGS else server
    await api.create(DEVSERVERS, make(name, world.rng.choice(ZONES)))


async def _lend(world: World, api: MemoryApi, name: str) -> None:
    make = gang if name in GANGS else server
    await api.create(DEVSERVERS, make(name, timeToLive=f"{world.rng.randrange(5, LENT_S_MAX)}s"))


async def _move(world: World, api: MemoryApi, name: str) -> None:
    await api.patch(DEVSERVERS, name, MergePatch({"spec": {"flavor": world.rng.choice(ZONES)}}), USERS)


async def _switch(world: World, api: MemoryApi, name: str) -> None:
    await api.patch(
        DEVSERVERS, name, MergePatch({"spec": {"running": world.rng.choice((True, False))}}), USERS
    )


async def _delete(_world: World, api: MemoryApi, name: str) -> None:
    await api.delete(DEVSERVERS, name, USERS)


async def _vandalize(_world: World, api: MemoryApi, name: str) -> None:
    kind = STATEFUL_SETS if name in GANGS else DEPLOYMENTS
    await api.patch(kind, name, MergePatch({"spec": {"replicas": 7}}), USERS)


async def _lose(world: World, api: MemoryApi, name: str) -> None:
    """A Pod goes, as with its node."""
    await api.delete(POD, f"{name}-{world.rng.randrange(RANKS)}", USERS, AT_ONCE)


async def unlike_wanted(truth: Harbour, api: MemoryApi) -> list[str]:
    """What is not as it should be once everybody has calmed down."""
    wrong = list[str]()
    servers = {one.meta.name: one for one in (await api.list(DEVSERVERS)).items}
    homes = {one.meta.name: one for one in (await api.list(CLAIM)).items}
    kinds = (DEPLOYMENTS, STATEFUL_SETS)
    bodies = {one.meta.name for kind in kinds for one in (await api.list(kind)).items}
    for name, one in servers.items():
        pods = pods_of(truth.cluster.entries(POD), one.meta.key)
        phases = {Phase.RUNNING} if one.spec.running else {Phase.STOPPED, Phase.EXPIRED}
        machines = one.spec.distributed.nodes if one.spec.distributed is not None else 1
        if one.status.phase not in phases or len(pods) != machines * int(one.spec.running):
            wrong.append(f"{name} is {one.status.phase} with {len(pods)} pods, running={one.spec.running}")
        if any(pod["spec"]["nodeSelector"] != {"zone": one.spec.flavor} for pod in pods):
            wrong.append(f"{name} runs on another flavor")
        own = [rank_home_name(name, rank) for rank in range(machines)]
        for home in (homes.pop(each, None) for each in (own if name in GANGS else [home_name(name)])):
            if home is None or HOME_DELETE_AFTER in home.meta.annotations:
                wrong.append(f"{name} has no home to stay in")
    wrong += [f"{name} outlived its retention" for name in homes]
    wrong += [f"{name} has no server" for name in bodies - servers.keys()]
    return wrong


def start(
    world: World, truth: Harbour | None = None, settings: OperatorSettings = SETTINGS
) -> tuple[Harbour, MemoryApi]:
    truth = truth or Harbour(world)
    world.links.weather = LinkConditions(delay_s=(0.01, 0.15))
    world.check(truth.violations)
    world.host("api").start(partial(api_server, world=world, truth=truth))
    boots = count(1)
    for name in REPLICAS:
        world.host(name).start(partial(replica, world=world, truth=truth, boots=boots, settings=settings))
    return truth, MemoryApi(truth.cluster, world.clock, "people")
