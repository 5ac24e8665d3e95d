"""Two teams whose servers share quota: a Kueue that admits and preempts, people, and the laws of quota."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from neorion.devservers.decide import HOME_DELETE_AFTER, SERVER_LABEL, home_name
from neorion.devservers.decide.names import rank_home_name
from neorion.devservers.model import Phase
from neorion.devservers.model.kube_types import DEPLOYMENTS, DEVSERVERS, STATEFUL_SETS
from neorion.devservers.model.kueue import CLUSTER_QUEUES, LOCAL_QUEUES, WORKLOADS
from neorion.devservers.testing import SETTINGS
from neorion.keel.base import Error, Finding, Severity
from neorion.keel.kube import MergePatch, ObjectKey
from neorion.keel.kube.core import CLAIM, POD
from neorion.keel.kube.testing import MemoryApi, WriteRequest
from neorion.keel.sim import World
from tests.sim.devservers_world import (
    AT_ONCE,
    RANKS,
    USERS,
    ZONES,
    Harbour,
    Machinery,
    equip,
    gang,
    pods_of,
    server,
)

QUEUED_SETTINGS: Final = replace(SETTINGS, kueue=True)
# Machines of each team, which lends what it does not use: together one and a half gangs for each.
NOMINAL: Final = 3
TEAMS: Final = ("north-team", "south-team")
TOTAL: Final = NOMINAL * len(TEAMS)
# More than fits: six single machines and three gangs.
SINGLES: Final = ("a", "b", "c", "d", "g", "h")
GANGS: Final = ("e", "f", "i")


def team_of(name: str) -> str:
    return TEAMS[ord(name) % len(TEAMS)]


class QuotaHarbour(Harbour):
    """The API server, which also sees to it that no Pod is there without quota for it.

    The quota of a deleted server is free at once, as that of a deleted Job: its Pods are not counted.
    """

    def admit(self, request: WriteRequest) -> None:
        super().admit(request)
        if request.resource == POD.resource and request.verb == "create" and request.after is not None:
            pods = [*self._pods(), request.after]
            self._check(request, _name(request.after), pods)
            if len(pods) > TOTAL:
                self._convict(request, f"makes Pod {len(pods)} of {TOTAL}")
        if request.resource == WORKLOADS.resource and request.verb == "delete" and request.before is not None:
            self._check(request, _name(request.before), self._pods(), request.before["metadata"]["uid"])

    def _check(
        self, request: WriteRequest, owner: str, pods: list[dict[str, Any]], without: str = ""
    ) -> None:
        """Quota of a server covers all its Pods, also those that end."""
        kept = [one for one in requests(self) if one["metadata"]["uid"] != without]
        held = total(one for one in kept if _name(one) == owner and has_quota(one))
        count = sum(_name(one) == owner for one in pods)
        if count > held:
            self._convict(request, f"leaves {owner} with {count} Pods and quota for {held}")

    def _pods(self) -> list[dict[str, Any]]:
        """All Pods of servers that are not deleted."""
        living = {
            entry.body["metadata"]["uid"]
            for entry in self.cluster.entries(DEVSERVERS).values()
            if "deletionTimestamp" not in entry.body["metadata"]
        }
        makers = {
            entry.body["metadata"]["uid"]
            for kind in (DEPLOYMENTS, STATEFUL_SETS)
            for entry in self.cluster.entries(kind).values()
            if _owner(entry.body) in living
        }
        return [entry.body for entry in self.cluster.entries(POD).values() if _owner(entry.body) in makers]

    def _convict(self, request: WriteRequest, deed: str) -> None:
        sentence = f"{request.user} {deed}"
        self.found.append(Finding(Severity.ERROR, "devservers.over_quota", str(request.key), sentence))


def _name(thing: dict[str, Any]) -> str:
    """The server that it belongs to."""
    return thing["metadata"]["labels"][SERVER_LABEL]


def _owner(thing: dict[str, Any]) -> str:
    return thing["metadata"]["ownerReferences"][0]["uid"]


def requests(truth: Harbour) -> list[dict[str, Any]]:
    """All Workloads, the oldest first."""
    bodies = [entry.body for entry in truth.cluster.entries(WORKLOADS).values()]
    return sorted(bodies, key=lambda one: int(one["metadata"]["uid"].removeprefix("uid-")))


def machines(workload: dict[str, Any]) -> int:
    return sum(one["count"] for one in workload["spec"]["podSets"])


def has_quota(workload: dict[str, Any]) -> bool:
    return _holds(workload, "QuotaReserved")


def _holds(workload: dict[str, Any], kind: str) -> bool:
    conditions = workload.get("status", {}).get("conditions", ())
    return any(one["type"] == kind and one["status"] == "True" for one in conditions)


def total(workloads: Iterable[dict[str, Any]], team: str = "") -> int:
    """Machines of all, or of one team."""
    return sum(machines(one) for one in workloads if team in ("", one["spec"]["queueName"]))


class Kueue:
    """Admits the oldest that fits, whole, and takes lent quota back for its owner. Quota is free when its Workload is gone."""

    def __init__(self, world: World, truth: Harbour) -> None:
        self._world = world
        self._truth = truth
        self._api = MemoryApi(truth.cluster, world.clock, "kueue")

    async def run(self) -> None:
        while True:
            await self._truth.cluster.history.news()
            await self._world.sleep(self._world.rng.uniform(0.05, 0.6))
            for one in requests(self._truth):
                if not has_quota(one):
                    await self._serve(one)

    async def _serve(self, workload: dict[str, Any]) -> None:
        team, needed = workload["spec"]["queueName"], machines(workload)
        holders = [one for one in requests(self._truth) if has_quota(one)]
        if total(holders) + needed <= TOTAL:
            assigned = {"name": "main", "flavors": {"cpu": "any"}}
            admission = {"clusterQueue": team, "podSetAssignments": [assigned]}
            await self._tell(workload, {"admission": admission}, "QuotaReserved", "Admitted")
            return
        if total(holders, team) + needed > NOMINAL:
            return
        # Its own share would do: others have borrowed of it.
        free = TOTAL - total(one for one in holders if not _holds(one, "Evicted"))
        for victim in reversed(holders):
            borrower = victim["spec"]["queueName"]
            if free >= needed:
                return
            if borrower == team or total(holders, borrower) <= NOMINAL or _holds(victim, "Evicted"):
                continue
            await self._tell(victim, {}, "Evicted", "Preempted")
            free += machines(victim)

    async def _tell(self, workload: dict[str, Any], status: dict[str, Any], *kinds: str) -> None:
        meta, before = workload["metadata"], workload.get("status", {}).get("conditions", [])
        message = f"For a workload of {meta['namespace']}."
        told = [{"type": kind, "status": "True", "reason": "Told", "message": message} for kind in kinds]
        patch = MergePatch({"status": {**status, "conditions": [*before, *told]}})
        await self._api.patch(WORKLOADS, meta["name"], patch, meta["namespace"], "status")


class SlowMachinery(Machinery):
    """Makes each Pod a moment after it has read how many are wanted, as controllers with a cache do."""

    async def _start(self, key: ObjectKey, body: dict[str, Any], wanted: str, name: str = "") -> None:
        await self._world.sleep(self._world.rng.uniform(0, 0.6))
        await super()._start(key, body, wanted, name)


def queued_server(name: str, zone: str) -> dict[str, Any]:
    made = gang(name, zone) if name in GANGS else server(name, zone)
    made["spec"]["queue"] = {"name": team_of(name)}
    return made


async def equip_queues(api: MemoryApi) -> None:
    await equip(api)
    for team in TEAMS:
        metadata = {"name": team}
        await api.create(CLUSTER_QUEUES, {"metadata": metadata, "spec": {"cohortName": "all"}})
        metadata = {"name": team, "namespace": USERS}
        await api.create(LOCAL_QUEUES, {"metadata": metadata, "spec": {"clusterQueue": team}})


async def applicants(world: World, api: MemoryApi, changes: int) -> None:
    """People who want more than there is, and change their minds."""
    await equip_queues(api)
    for _ in range(changes):
        await world.sleep(world.rng.uniform(0, 2))
        name = world.rng.choice((*SINGLES, *GANGS))
        act = world.rng.choice((_create, _create, _create, _start, _stop, _move, _delete, _lose))
        try:
            await act(world, api, name)
        except Error as error:
            world.note(f"applicants: {error.code}")


async def _create(world: World, api: MemoryApi, name: str) -> None:
    await api.create(DEVSERVERS, queued_server(name, world.rng.choice(ZONES)))


async def _start(_world: World, api: MemoryApi, name: str) -> None:
    await api.patch(DEVSERVERS, name, MergePatch({"spec": {"running": True}}), USERS)


async def _stop(_world: World, api: MemoryApi, name: str) -> None:
    await api.patch(DEVSERVERS, name, MergePatch({"spec": {"running": False}}), USERS)


async def _move(world: World, api: MemoryApi, name: str) -> None:
    await api.patch(DEVSERVERS, name, MergePatch({"spec": {"flavor": world.rng.choice(ZONES)}}), USERS)


async def _delete(_world: World, api: MemoryApi, name: str) -> None:
    await api.delete(DEVSERVERS, name, USERS)


async def _lose(world: World, api: MemoryApi, name: str) -> None:
    """A Pod goes, as with its node."""
    await api.delete(POD, f"{name}-{world.rng.randrange(RANKS)}", USERS, AT_ONCE)


async def unlike_quota(truth: Harbour, api: MemoryApi) -> list[str]:
    """Differences from what all were promised, once everything is calm."""
    wrong = list[str]()
    held = [one for one in requests(truth) if has_quota(one)]
    homes = {one.meta.name: one for one in (await api.list(CLAIM)).items}
    for one in (await api.list(DEVSERVERS)).items:
        name, phase = one.meta.name, one.status.phase
        pods = len(pods_of(truth.cluster.entries(POD), one.meta.key))
        size = one.spec.distributed.nodes if one.spec.distributed is not None else 1
        expected = {Phase.RUNNING: size, Phase.QUEUED: 0} if one.spec.running else {Phase.STOPPED: 0}
        if phase is None or expected.get(phase) != pods:
            wrong.append(f"{name} is {phase} with {pods} Pods, running={one.spec.running}")
        if phase is Phase.QUEUED and (
            total(held) + size <= TOTAL or total(held, team_of(name)) + size <= NOMINAL
        ):
            wrong.append(f"{name} waits although there is quota for it")
        if phase is Phase.STOPPED and one.status.stop_reason == "Preempted" and not one.status.message:
            wrong.append(f"{name} lost its quota and does not say so")
        kept = [rank_home_name(name, rank) for rank in range(size)] if name in GANGS else [home_name(name)]
        if any(home not in homes or HOME_DELETE_AFTER in homes[home].meta.annotations for home in kept):
            wrong.append(f"{name} has no home to stay in")
    running = {one.meta.name for one in (await api.list(DEVSERVERS)).items if one.spec.running}
    idle = [_name(one) for one in held]
    wrong += [f"{name} holds quota and does not run" for name in idle if name not in running]
    return wrong
