"""The operator of development servers killed, cut off, fought and misled about the time: all converges, and no home is lost."""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count

import anyio
import pytest

from neorion.devservers.app.operator import LEASE as LEASE_NAME
from neorion.devservers.decide import HOME_DELETE_AFTER
from neorion.devservers.model import Phase, StopReason
from neorion.devservers.model.kube_types import DEPLOYMENTS, DEVSERVERS
from neorion.drydock.cluster import Cluster
from neorion.drydock.simulated import SimulatedNodeGroup, ensure_simulated
from neorion.drydock.testing import namespace
from neorion.keel.base import Instant
from neorion.keel.clock import SystemClock
from neorion.keel.kube import Added, MergePatch, Modified
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.core import CLAIM, LEASE, POD, SERVICE
from tests.kube.conftest import furnish
from tests.kube.dev_room import PATIENCE_S, Moment, Room, Tap, operating, operator, room_in
from tests.kube.new_kinds import restart_controllers
from tests.kube.proxy import Wire, wired

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600), pytest.mark.usefixtures("cut_connections")]

ZONE = "topology.kubernetes.io/zone"


async def die_again_and_again(client: Client, namespace: str, deaths: Counter[Moment]) -> None:
    """One operator after the other; each is killed at its first write, in turn before and after it has happened."""
    for number in count():
        moment = Moment.BEFORE if number % 2 else Moment.AFTER
        tap = Tap(client.transport, lambda _number, moment=moment: moment)
        with tap.life:
            await operator(Client(tap), namespace).run(anyio.Event())
        deaths[moment] += 1


async def test_operators_killed_at_every_write_finish_what_the_first_began(fleet_api: Client, room: Room):
    east = await room.flavor("east", nodeSelector={ZONE: "US-EAST-04A"})
    west = await room.flavor("west", nodeSelector={ZONE: "US-EAST-04B"})
    deaths = Counter[Moment]()
    async with anyio.create_task_group() as group:
        group.start_soon(die_again_and_again, fleet_api, room.namespace, deaths)
        await room.create("mydev", east, home={"retention": "1h"})
        await room.until_phase("mydev", Phase.RUNNING)
        home = room.home_uid("mydev")
        await room.change("mydev", flavor=west)
        await room.until(
            lambda: [pod.spec.node_selector for pod in room.pods_of("mydev")] == [{ZONE: "US-EAST-04B"}]
        )
        await room.until_phase("mydev", Phase.RUNNING)
        await room.change("mydev", running=False)
        await room.until_phase("mydev", Phase.STOPPED)
        await room.change("mydev", running=True)
        await room.until_phase("mydev", Phase.RUNNING)
        assert await counted(room) == {"servers": 1, "bodies": 1, "services": 1, "homes": 1, "pods": 1}
        await room.change("mydev", lifecycle={"timeToLive": "1s", "retention": "1s"})
        await room.until_gone("mydev")
        group.cancel_scope.cancel()
        kept = room.home("mydev")
        assert kept is not None
        assert kept.meta.uid == home
        assert HOME_DELETE_AFTER in kept.meta.annotations
        assert min(deaths.values()) > 10


async def counted(room: Room) -> dict[str, int]:
    """As the server has it, pods that go left out."""
    api, where = room.api, room.namespace
    pods = (await api.list(POD, where)).items
    return {
        "servers": len((await api.list(DEVSERVERS, where)).items),
        "bodies": len((await api.list(DEPLOYMENTS, where)).items),
        "services": len((await api.list(SERVICE, where)).items),
        "homes": len((await api.list(CLAIM, where)).items),
        "pods": len([pod for pod in pods if pod.meta.deleted is None]),
    }


async def test_a_storm_of_edits_ends_in_what_was_wanted_last(fleet_api: Client, room: Room):
    async def edit(number: int) -> None:
        for turn in range(10):
            mark = {"metadata": {"annotations": {f"by-{number}": str(turn)}}}
            await fleet_api.patch(DEVSERVERS, "mydev", MergePatch(mark), room.namespace)
            vandal = {**mark, "spec": {"replicas": turn % 3}}
            await fleet_api.patch(DEPLOYMENTS, "mydev", MergePatch(vandal), room.namespace)
            await fleet_api.patch(CLAIM, "mydev-home", MergePatch(mark), room.namespace)

    async with operating(fleet_api, room.namespace):
        await room.create("mydev", await room.flavor("small"))
        await room.until_phase("mydev", Phase.RUNNING)
        home = room.home_uid("mydev")
        # Seven replicas of one home would be two pods at once; that is the vandals' doing, not the operator's.
        room.broken = _Deaf()
        async with anyio.create_task_group() as group:
            for number in range(6):
                group.start_soon(edit, number)
        await room.change("mydev", running=False)
        await room.until_phase("mydev", Phase.STOPPED)
        await room.change("mydev", running=True)
        await room.until_phase("mydev", Phase.RUNNING)
        await room.until(lambda: len(room.pods_of("mydev")) == 1)
    assert room.home_uid("mydev") == home
    assert (await counted(room))["homes"] == 1


class _Deaf(list[str]):
    """Hears no complaint."""

    def append(self, _complaint: str, /) -> None: ...


class SetClock(SystemClock):
    """A clock that somebody sets."""

    def __init__(self) -> None:
        self.off_hours = 0

    def now(self) -> Instant:
        return Instant(super().now().ns + self.off_hours * 3_600_000_000_000)


async def test_a_clock_that_is_set_stops_what_is_over_by_it_and_takes_no_home_before_its_day(
    fleet_api: Client, room: Room
):
    clock = SetClock()
    async with operating(fleet_api, room.namespace, clock=clock):
        small = await room.flavor("small")
        lent = {"timeToLive": "1h", "retention": "2h", "autoShutdown": False}
        await room.create("lent", small, lifecycle=lent, home={"retention": "3h"})
        await room.create("gone", small, home={"retention": "3h"})
        for name in ("lent", "gone"):
            await room.until_phase(name, Phase.RUNNING)
        await room.delete("gone")
        await room.until_gone("gone")
        for hours in (-5, 2):
            clock.off_hours = hours
            # A clock that was set is noticed at the next look; each of these makes one.
            await room.change("lent", image=f"registry.example/dev:{hours}")
            touched = MergePatch({"metadata": {"annotations": {"touched": str(hours)}}})
            await fleet_api.patch(CLAIM, "gone-home", touched, room.namespace)
            expected = Phase.RUNNING if hours < 0 else Phase.EXPIRED
            await room.until_phase("lent", expected)
        stopped = room.server("lent")
        assert stopped is not None
        assert stopped.status.stop_reason is StopReason.EXPIRED
        clock.off_hours = 0
        await room.change("lent", running=True)
        await room.until_phase("lent", Phase.RUNNING)
    kept = room.home("gone")
    assert kept is not None
    day = datetime.fromisoformat(kept.meta.annotations[HOME_DELETE_AFTER])
    now = datetime.fromtimestamp(clock.now().ns / 1e9, UTC)
    assert day - now > timedelta(hours=2)


@asynccontextmanager
async def behind_a_wire(cluster: Cluster) -> AsyncGenerator[tuple[Wire, Client]]:
    async with (
        wired(read_kubeconfig([cluster.kubeconfig]).cluster()) as (wire, seen),
        connect(seen, "devservers") as api,
    ):
        yield wire, api


async def test_of_two_operators_one_works_and_one_cut_off_stops_before_the_other_begins(
    fleet: Cluster, fleet_api: Client, room: Room
):
    small = await room.flavor("small")
    async with (
        behind_a_wire(fleet) as (first_wire, first_api),
        behind_a_wire(fleet) as (_, second_api),
        operating(first_api, room.namespace, "first") as first,
    ):
        await holder_is(fleet_api, room.namespace, "first")
        async with operating(second_api, room.namespace, "second") as second:
            await room.create("before", small)
            await room.until_phase("before", Phase.RUNNING)
            assert second.writes == []
            first_wire.shut = True
            first_wire.cut()
            await room.create("during", small)
            await holder_is(fleet_api, room.namespace, "second")
            written = len(first.writes)
            await room.until_phase("during", Phase.RUNNING)
            first_wire.shut = False
            await room.create("after", small)
            await room.until_phase("after", Phase.RUNNING)
            assert len(first.writes) == written
            assert second.writes
    assert await counted(room) == {"servers": 3, "bodies": 3, "services": 3, "homes": 3, "pods": 3}


async def holder_is(api: Client, where: str, name: str) -> None:
    with anyio.fail_after(PATIENCE_S):
        async with api.watch(LEASE, where) as events:
            async for event in events:
                if not isinstance(event, Added | Modified) or event.object.meta.name != LEASE_NAME:
                    continue
                if event.object.spec.holder_identity == name:
                    return


async def test_a_server_that_is_killed_and_comes_back_finds_an_operator_that_has_missed_nothing(
    own_cluster: Cluster,
):
    await ensure_simulated(own_cluster, SimulatedNodeGroup(2))
    await furnish(own_cluster)
    await restart_controllers(own_cluster)
    async with (
        connect(read_kubeconfig([own_cluster.kubeconfig]).cluster(), "people") as people,
        namespace(own_cluster) as where,
        room_in(people, where) as room,
        behind_a_wire(own_cluster) as (wire, api),
        operating(api, where),
    ):
        small = await room.flavor("small")
        for name in ("stays", "goes", "stops"):
            await room.create(name, small, home={"retention": "1h"})
        for name in ("stays", "goes", "stops"):
            await room.until_phase(name, Phase.RUNNING)
        homes = {name: room.home_uid(name) for name in ("stays", "goes", "stops")}
        # The operator is cut off while the world goes on, and the server that it comes back to knows no past.
        wire.shut = True
        wire.cut()
        await room.delete("goes")
        await room.change("stops", running=False)
        await people.delete(SERVICE, "stays-ssh", where)
        await own_cluster.stop("kube-apiserver")
        await own_cluster.start_control_plane()
        await room.create("comes", small)
        wire.shut = False
        await room.until_gone("goes")
        await room.until_phase("stops", Phase.STOPPED)
        for name in ("stays", "comes"):
            await room.until_phase(name, Phase.RUNNING)
        await room.until(lambda: len(room.services) == 3)
        assert {name: room.home_uid(name) for name in homes} == homes
