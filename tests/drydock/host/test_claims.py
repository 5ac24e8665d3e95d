"""Slots of this machine, wanted by clusters that know nothing of each other."""

from pathlib import Path

import anyio
import pytest

from neorion.drydock.host.claims import release, take

pytestmark = pytest.mark.anyio


def _cluster(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


async def test_of_many_who_come_at_once_one_gets_the_slot(tmp_path: Path):
    clusters = [_cluster(tmp_path, f"c{number}") for number in range(16)]
    winners = list[Path]()

    async def compete(cluster: Path) -> None:
        if await take(0, cluster, tmp_path / "claims"):
            winners.append(cluster)

    async with anyio.create_task_group() as tasks:
        for cluster in clusters:
            tasks.start_soon(compete, cluster)
    (winner,) = winners
    assert await take(0, winner, tmp_path / "claims")


async def test_only_its_owner_gives_a_slot_back_and_the_last_leaves_nothing(tmp_path: Path):
    claims = tmp_path / "claims"
    one, other = _cluster(tmp_path, "one"), _cluster(tmp_path, "other")
    assert await take(3, one, claims)
    await release(3, other, claims)
    assert not await take(3, other, claims)
    await release(3, one, claims)
    assert not claims.exists()
    await release(3, one, claims)


async def test_the_slot_of_a_cluster_that_is_gone_is_free(tmp_path: Path):
    claims = tmp_path / "claims"
    one, other = _cluster(tmp_path, "one"), _cluster(tmp_path, "other")
    assert await take(3, one, claims)
    one.rmdir()
    assert await take(3, other, claims)
