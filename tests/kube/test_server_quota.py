"""Servers and a real Kueue: two teams with quota for one and a half gangs."""

import io
import json
import os
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from neorion.devservers.app import OperatorOptions, build
from neorion.devservers.cli.commands.quota_impl import quota
from neorion.devservers.client import DevServerApi
from neorion.devservers.decide import OperatorSettings
from neorion.devservers.model import ConditionType, DevServerStatus, Phase
from neorion.devservers.model.kueue import WORKLOADS
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.kueue import resume_kueue
from neorion.drydock.simulated import SimulatedNodeGroup
from neorion.keel.base import Duration
from neorion.keel.cli import ColorMode, Format, SharedOptions
from neorion.keel.cli.kit import Output, TerminalStream
from neorion.keel.kube import Kind, KubeObject
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.core import NAMESPACE, POD
from tests.kube.conftest import furnish
from tests.kube.dev_room import CLOCK, PATIENCE_S, RNG, Room, room_in
from tests.kube.guard_patience import allowed

pytestmark = [pytest.mark.anyio, pytest.mark.needs("drydock"), pytest.mark.timeout(480)]

SETTINGS = OperatorSettings(default_image="registry.example/dev:1", kueue=True)
GANG: dict[str, Any] = {"worldSize": 4, "backend": "gloo"}
TEAMS = ("dev-ann", "dev-bob")
MOMENT = Duration.of(ms=50)


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    """A control plane with Kueue and simulated nodes: ClusterQueues are the whole cluster's."""
    manager = ClusterManager.of({**os.environ, "XDG_STATE_HOME": str(tmp_path_factory.mktemp("teams"))})
    options = ClusterOptions(kueue=True, simulated=(SimulatedNodeGroup(4),))

    async def up() -> Cluster:
        cluster = await manager.up("teams", options)
        await furnish(cluster)
        return cluster

    try:
        yield anyio.run(up)
    finally:
        anyio.run(manager.down, "teams")


def queue(plural: str, kind: str, name: str, spec: dict[str, Any], namespace: str = "") -> tuple[Any, Any]:
    known = Kind(KubeObject, kind, plural, "kueue.x-k8s.io", "v1beta2", namespaced=bool(namespace)).raw
    return known, {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def quotas() -> list[tuple[Any, Any]]:
    """Three CPUs for each team, which lend to each other what they do not use, and take it back."""
    made = [queue("resourceflavors", "ResourceFlavor", "any", {})]
    for namespace in TEAMS:
        amounts = [
            {"name": "cpu", "nominalQuota": "3"},
            {"name": "memory", "nominalQuota": "100Gi"},
        ]
        group = {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "any", "resources": amounts}]}
        spec = {
            "namespaceSelector": {},
            "cohortName": "all",
            "resourceGroups": [group],
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
        }
        made.append(queue("clusterqueues", "ClusterQueue", namespace, spec))
        made.append(queue("localqueues", "LocalQueue", "team", {"clusterQueue": namespace}, namespace))
    return made


@pytest.fixture
async def rooms(teams: Cluster) -> AsyncGenerator[tuple[Room, Room]]:
    async with connect(read_kubeconfig([teams.kubeconfig]).cluster(), "test") as client:
        for namespace in TEAMS:
            await client.apply(NAMESPACE.raw, {"metadata": {"name": namespace}}, "test")
        for kind, body in quotas():
            await allowed(lambda kind=kind, body=body: client.apply(kind, body, "test"))
        async with room_in(client, TEAMS[0]) as ann, room_in(client, TEAMS[1]) as bob:
            yield ann, bob


@asynccontextmanager
async def operating(*rooms: Room) -> AsyncGenerator[None]:
    """An operator for each namespace."""
    stopping = anyio.Event()
    async with anyio.create_task_group() as group:
        for room in rooms:
            plan = OperatorOptions(SETTINGS, room.namespace, "one", scope=room.namespace)
            group.start_soon(build(room.api, plan, CLOCK, RNG).run, stopping)
        yield
        stopping.set()


async def create(room: Room, name: str, flavor: str, **spec: Any) -> None:
    await room.create(name, flavor, queue={"name": "team"}, **spec)


def quota_message(status: DevServerStatus) -> str:
    return next((one.message for one in status.conditions if one.type is ConditionType.QUOTA), "")


def place_of(room: Room, name: str) -> tuple[int | None, int | None]:
    server = room.server(name)
    queue = server.status.queue if server is not None else None
    return (queue.place, queue.waiting) if queue is not None else (None, None)


async def pods(client: Client, namespace: str) -> int:
    return len((await client.list(POD, namespace)).items)


async def until_next_second(room: Room) -> None:
    """Requests of one second have no order: Kueue knows whole seconds."""
    newest = max(one.meta.created or "" for one in (await room.api.list(WORKLOADS, room.namespace)).items)
    while str(CLOCK.now())[:19] <= newest[:19]:
        await CLOCK.sleep(MOMENT)


async def until_no_pods(client: Client, namespace: str) -> None:
    left: list[Any] = []
    with anyio.move_on_after(PATIENCE_S):
        while left := list((await client.list(POD, namespace)).items):
            await CLOCK.sleep(MOMENT)
    assert [(one.meta.name, one.meta.labels, one.meta.deleted, one.meta.finalizers) for one in left] == []


async def test_two_teams_borrow_wait_and_take_back(rooms: tuple[Room, Room]):
    ann, bob = rooms
    client = ann.api
    async with operating(ann, bob):
        flavor = await ann.flavor("cpu", "1")
        # Four of the six CPUs: three of her own, and one of his.
        await create(ann, "gang", flavor, mode="distributed", distributed=GANG)
        borrowed = await ann.until_phase("gang", Phase.RUNNING)
        assert len(borrowed.status.ranks) == 4
        homes = ann.rank_homes("gang")

        # Four more are not there, and so there is none of its ranks; the second waits behind the first.
        await create(bob, "first", flavor, mode="distributed", distributed=GANG)
        await bob.until_phase("first", Phase.QUEUED)
        await until_next_second(bob)
        await create(bob, "second", flavor, mode="distributed", distributed=GANG)
        for place, name in enumerate(("first", "second"), 1):
            await bob.until(lambda place=place, name=name: place_of(bob, name) == (place, 2))
        first = bob.server("first")
        assert first is not None
        assert quota_message(first.status).startswith("Place 1 of 2 in team: ")
        assert first.status.queue is not None
        assert first.status.queue.cluster_queue == bob.namespace
        assert await pods(client, bob.namespace) == 0
        for name in ("first", "second"):
            await bob.delete(name)
            await bob.until_gone(name)

        # Three are his own: he takes back the one that she has borrowed, and her gang stops as a whole.
        own = {**GANG, "worldSize": 3}
        await create(bob, "own", flavor, mode="distributed", distributed=own)
        stopped = await ann.until_phase("gang", Phase.STOPPED)
        await bob.until_phase("own", Phase.RUNNING)
        assert stopped.status.stop_reason == "Preempted"
        assert "for dev-bob/own" in (stopped.status.message or "")
        # The last Pod may still be ending when the server has stopped.
        await until_no_pods(client, ann.namespace)
        assert ann.rank_homes("gang") == homes

        # She asks again, and gets it when he has given his back.
        await ann.change("gang", running=True)
        await ann.until_phase("gang", Phase.QUEUED)
        await bob.change("own", running=False)
        await ann.until_phase("gang", Phase.RUNNING)
        assert ann.rank_homes("gang") == homes
        await bob.until_phase("own", Phase.STOPPED)
        assert (await client.list(WORKLOADS, bob.namespace)).items == []
        for room, name in ((ann, "gang"), (bob, "own")):
            await room.delete(name)
            await room.until_gone(name)


async def test_a_server_of_one_machine_asks_too_and_another_flavor_asks_again(rooms: tuple[Room, Room]):
    ann, _ = rooms
    async with operating(ann):
        small, large = await ann.flavor("one", "1"), await ann.flavor("two", "2")
        await create(ann, "box", small)
        await ann.until_phase("box", Phase.RUNNING)
        home = ann.home_uid("box")
        await ann.change("box", flavor=large)
        await ann.until(lambda: bool(ann.pods_of("box")) and ann.cpu("box") == "2")
        await ann.until_phase("box", Phase.RUNNING)
        [request] = (await ann.api.list(WORKLOADS, ann.namespace)).items
        assert request.status.admission is not None
        assert ann.home_uid("box") == home
        await ann.delete("box")
        await ann.until_gone("box")
        # Others count the Pods of this namespace.
        await until_no_pods(ann.api, ann.namespace)


async def test_kueue_is_killed_and_comes_back(teams: Cluster, rooms: tuple[Room, Room]):
    """Servers that run go on, none starts without quota, and the queue is as it was."""
    ann, _ = rooms
    own = {**GANG, "worldSize": 3}
    async with operating(ann):
        flavor = await ann.flavor("killed", "2")
        await create(ann, "runs", flavor, mode="distributed", distributed=own)
        await ann.until_phase("runs", Phase.RUNNING)
        await create(ann, "waits", flavor)
        await ann.until(lambda: place_of(ann, "waits") == (1, 1))
        await until_next_second(ann)
        ranks = {pod.meta.uid for pod in ann.pods_of("runs")}

        await teams.stop("kueue")
        await create(ann, "later", flavor)
        # The request for quota is refused while nothing checks it, and the server says so.
        await ann.until(lambda: "kueue" in (message_of(ann, "later") or "").lower())
        assert {pod.meta.uid for pod in ann.pods_of("runs")} == ranks
        assert ann.pods_of("waits") == ann.pods_of("later") == []

        await resume_kueue(teams)
        await ann.until(lambda: (place_of(ann, "waits"), place_of(ann, "later")) == ((1, 2), (2, 2)))
        assert {pod.meta.uid for pod in ann.pods_of("runs")} == ranks
        await ann.change("runs", running=False)
        for name in ("waits", "later"):
            await ann.until_phase(name, Phase.RUNNING)
        for name in ("runs", "waits", "later"):
            await ann.delete(name)
            await ann.until_gone(name)
        await until_no_pods(ann.api, ann.namespace)


def message_of(room: Room, name: str) -> str | None:
    server = room.server(name)
    return server.status.message if server is not None else None


def a_job_of_iris(namespace: str) -> dict[str, Any]:
    """The Pod of an attempt, in the queue of a team."""
    container = {"name": "runner", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    metadata = {
        "name": "iris-1",
        "namespace": namespace,
        "labels": {"kueue.x-k8s.io/queue-name": "team"},
    }
    return {"metadata": metadata, "spec": {"containers": [container], "terminationGracePeriodSeconds": 0}}


async def shown(client: Client, *team: str) -> list[dict[str, Any]]:
    """What `devctl quota -o json` prints."""
    text = io.StringIO()
    screen = TerminalStream.of(text, ColorMode.NEVER, {})
    out = Output(SharedOptions(output=Format.JSON), screen, screen, {})
    await quota(DevServerApi(client, TEAMS[0], CLOCK), out, *team or ("",))
    return json.loads(text.getvalue()[: text.getvalue().rindex("]") + 1])


async def test_servers_and_jobs_of_a_team_are_counted_together(rooms: tuple[Room, Room]):
    ann, _ = rooms
    client = ann.api
    async with operating(ann):
        flavor = await ann.flavor("counted", "3")
        await create(ann, "box", flavor)
        await ann.until_phase("box", Phase.RUNNING)
        await allowed(lambda: client.create(POD.raw, a_job_of_iris(ann.namespace)))
        with anyio.fail_after(PATIENCE_S):
            while (team := (await shown(client))[0])["jobs"] == 0:
                await CLOCK.sleep(MOMENT)
        assert (team["team"], team["servers"], team["waiting"]) == ("dev-ann", 1, 0)
        assert team["resources"]["cpu"] == {"used": "4", "quota": "3", "borrowed": "1"}
        holders = {(one["kind"], one["name"]): one["used"]["cpu"] for one in await shown(client, "dev-ann")}
        assert holders == {("server", "box"): "3", ("job", "iris-1"): "1"}
        await client.delete(POD, "iris-1", ann.namespace)
        await ann.delete("box")
        await ann.until_gone("box")
        await until_no_pods(client, ann.namespace)
