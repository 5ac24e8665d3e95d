"""Clusters side by side, and what is refused."""

from pathlib import Path

import anyio
import pytest

from neorion.drydock.binaries import Shelf
from neorion.drydock.cluster import Cluster
from neorion.drydock.host import running
from neorion.drydock.layout import Door, Layout
from neorion.drydock.network import SLOTS
from neorion.drydock.yard import Record, Yard
from neorion.keel.base import Invalid, NoCapacity, NotFound
from neorion.keel.clock import SystemClock

pytestmark = pytest.mark.anyio


def _yard(folder: Path) -> Yard:
    return Yard(folder, Shelf.of(), SystemClock())


def _pretend(yard: Yard, name: str, slot: int) -> None:
    (yard.folder / name).mkdir(parents=True)
    yard.save(name, Record(slot))


@pytest.mark.usefixtures("cluster")
async def test_a_second_cluster_stands_beside_the_first_and_goes_alone(cluster: Cluster, tmp_path: Path):
    yard = _yard(tmp_path)
    async with yard.cluster("second") as second:
        assert second.layout.slot != cluster.layout.slot
        for each in (cluster, second):
            async with each.api() as api:
                assert (await api.get("/readyz"))["text"] == "ok"
        # Neither knows the other's administrator.
        stranger = Cluster(Layout(second.layout.folder, cluster.layout.slot), yard.shelf, yard.clock)
        async with stranger.api() as api:
            with pytest.raises(Exception, match="does not answer"):
                await api.get("/readyz")
    assert list(tmp_path.iterdir()) == []
    assert running(tmp_path / "second") == []
    assert {process.part for process in running(cluster.layout.folder)} >= {"etcd", "kube-apiserver"}


async def test_clusters_that_come_at_once_take_different_slots(tmp_path: Path):
    yard = _yard(tmp_path)

    async def claim(name: str) -> None:
        (tmp_path / name).mkdir()
        await yard._claim(name)

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(claim, f"c{number}")
    slots = [cluster.layout.slot for cluster in yard.clusters()]
    assert len(set(slots)) == 8


async def test_a_full_machine_says_so(tmp_path: Path):
    yard = _yard(tmp_path)
    for slot in range(SLOTS):
        _pretend(yard, f"c{slot}", slot)
    (tmp_path / "more").mkdir()
    with pytest.raises(NoCapacity, match="room for no more"):
        await yard._claim("more")


def test_no_two_slots_share_a_port_or_an_address():
    layouts = [Layout(Path("x"), slot) for slot in range(SLOTS)]
    ports = [layout.port(door) for layout in layouts for door in Door]
    assert len(set(ports)) == len(ports)
    assert max(ports) < 32768
    assert len({layout.addresses.block for layout in layouts}) == SLOTS


async def test_a_name_that_cannot_be_one_is_refused_before_anything_is_made(tmp_path: Path):
    with pytest.raises(Invalid, match="cannot be a name"):
        await _yard(tmp_path).up("../elsewhere")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_cluster_is_answered_with_the_nearest(tmp_path: Path):
    yard = _yard(tmp_path)
    _pretend(yard, "training", 0)
    with pytest.raises(NotFound) as caught:
        yard.find("trainig")
    assert caught.value.hint == 'did you mean "training"?'


async def test_removing_what_is_not_there_is_no_error(tmp_path: Path):
    await _yard(tmp_path).down("nobody")
    assert list(tmp_path.iterdir()) == []
