"""Distributed servers on a real API server, with real controllers around the operator and simulated nodes."""

from typing import Any

import pytest

from neorion.devservers.decide import HOME_DELETE_AFTER
from neorion.devservers.model import DevServerStatus, Phase
from neorion.devservers.model.kube_types import STATEFUL_SETS
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import POD, SERVICE
from tests.kube.dev_room import Room, operating, owned_by

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(480)]

ZONE = "topology.kubernetes.io/zone"
GANG: dict[str, Any] = {"worldSize": 3, "backend": "gloo"}


async def create(room: Room, name: str, flavor: str, **spec: Any) -> DevServerStatus:
    """A distributed server of three ranks, once all of them are ready."""
    await room.create(name, flavor, mode="distributed", **{"distributed": GANG, **spec})
    return (await room.until_phase(name, Phase.RUNNING)).status


def uids(room: Room, name: str) -> dict[str, str]:
    return {pod.meta.name: pod.meta.uid for pod in room.pods_of(name)}


async def test_all_ranks_run_under_their_own_names_with_a_home_each(fleet_api: Client, room: Room):
    async with operating(fleet_api, room.namespace):
        status = await create(room, "gang", await room.flavor("small"))
    server = room.server("gang")
    assert server is not None
    assert [rank.name for rank in status.ranks] == ["gang-0", "gang-1", "gang-2"]
    assert all(rank.ready and rank.node for rank in status.ranks)
    assert set(room.rank_homes("gang")) == {f"home-gang-{rank}" for rank in range(3)}
    service = await fleet_api.get(SERVICE, "gang", room.namespace)
    body = await fleet_api.get(STATEFUL_SETS, "gang", room.namespace)
    assert owned_by(service, server)
    assert owned_by(body, server)
    assert room.home("gang") is None


async def test_a_rank_that_is_lost_comes_back_to_its_home_and_the_others_stay(fleet_api: Client, room: Room):
    async with operating(fleet_api, room.namespace):
        await create(room, "gang", await room.flavor("small"))
        before, homes = uids(room, "gang"), room.rank_homes("gang")
        await fleet_api.delete(POD, "gang-1", room.namespace)
        await room.until(lambda: uids(room, "gang").get("gang-1", before["gang-1"]) != before["gang-1"])
        await room.until_phase("gang", Phase.RUNNING)
        await room.until(lambda: room.told("gang", "RankLost"))
    after = uids(room, "gang")
    assert {name for name in after if after[name] != before[name]} == {"gang-1"}
    assert room.rank_homes("gang") == homes


async def test_stop_start_and_another_flavor_concern_the_whole(fleet_api: Client, room: Room):
    async with operating(fleet_api, room.namespace):
        east = await room.flavor("east", nodeSelector={ZONE: "US-EAST-04A"})
        west = await room.flavor("west", nodeSelector={ZONE: "US-EAST-04B"})
        await create(room, "gang", east)
        homes = room.rank_homes("gang")
        await room.change("gang", running=False)
        stopped = await room.until_phase("gang", Phase.STOPPED)
        assert stopped.status.ranks == ()
        assert room.pods_of("gang") == []
        await room.change("gang", running=True)
        await room.until_phase("gang", Phase.RUNNING)
        first = uids(room, "gang")
        await room.change("gang", flavor=west)
        await room.until(
            lambda: len(room.pods_of("gang")) == 3 and not uids(room, "gang").items() & first.items()
        )
        server = await room.until_phase("gang", Phase.RUNNING)
    assert server.status.flavor is not None
    assert server.status.flavor.applied == west
    assert {pod.spec.node_selector[ZONE] for pod in room.pods_of("gang")} == {"US-EAST-04B"}
    assert room.rank_homes("gang") == homes


async def test_ranks_never_run_in_two_versions(fleet_api: Client, room: Room):
    seen: list[set[str]] = []

    def watch(_before: object, _after: object, _lane: object) -> None:
        hashes = {pod.meta.labels.get("devservers.io/template", "") for pod in room.pods_of("gang")}
        seen.append(hashes)

    room.pods.listen(watch)
    async with operating(fleet_api, room.namespace):
        await create(room, "gang", await room.flavor("small"))
        first = uids(room, "gang")
        await room.change(
            "gang", distributed={**GANG, "worldSize": 4, "ncclSettings": {"NCCL_DEBUG": "INFO"}}
        )
        await room.until(
            lambda: len(room.pods_of("gang")) == 4 and not uids(room, "gang").items() & first.items()
        )
        await room.until_phase("gang", Phase.RUNNING)
    assert max(map(len, seen)) == 1
    assert len(set().union(*seen)) == 2


async def test_more_cpu_reaches_all_ranks_without_a_restart(fleet_api: Client, room: Room):
    async with operating(fleet_api, room.namespace):
        small = await room.flavor("small")
        more = await room.flavor("more", "200m")
        await create(room, "gang", small)
        before = uids(room, "gang")
        await room.change("gang", flavor=more)
        await room.until(
            lambda: all(
                pod.spec.containers[0].resources.requests["cpu"] == "200m" for pod in room.pods_of("gang")
            )
        )
    assert uids(room, "gang") == before


async def test_the_homes_of_all_ranks_outlive_the_server_and_are_taken_over(fleet_api: Client, room: Room):
    async with operating(fleet_api, room.namespace):
        small = await room.flavor("small")
        await create(room, "gang", small)
        homes = room.rank_homes("gang")
        await room.delete("gang")
        await room.until_gone("gang")
        kept = [home for home in room.homes if home.meta.name in homes]
        assert all(HOME_DELETE_AFTER in home.meta.annotations for home in kept)
        await create(room, "gang", small)
        assert room.rank_homes("gang") == homes
        await room.until(lambda: not any(HOME_DELETE_AFTER in home.meta.annotations for home in room.homes))
        await room.delete("gang")
        await room.until_gone("gang")


async def test_the_time_of_the_whole_is_over_at_once(fleet_api: Client, room: Room):
    async with operating(fleet_api, room.namespace):
        life = {"timeToLive": "6s", "autoShutdown": False}
        await create(room, "gang", await room.flavor("small"), lifecycle=life)
        server = await room.until_phase("gang", Phase.EXPIRED)
    assert room.pods_of("gang") == []
    assert server.status.stop_reason == "Expired"
    assert len(room.rank_homes("gang")) == 3
