"""Clusters side by side, and what is refused."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from neorion.drydock.binaries import BinaryCache
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterRecord
from neorion.drydock.control import PARTS
from neorion.drydock.host import UNDO, Component, UndoLog, running, start
from neorion.drydock.layout import Layout, PortOffset
from neorion.drydock.network import SLOTS
from neorion.drydock.slots import claim_slot, keep_slot
from neorion.keel.base import Conflict, Invalid, NoCapacity, NotFound, Terminal
from neorion.keel.clock import SystemClock

pytestmark = pytest.mark.anyio


def _yard(folder: Path) -> ClusterManager:
    return ClusterManager(folder, BinaryCache.of(), SystemClock())


def _pretend(yard: ClusterManager, name: str, slot: int) -> None:
    (yard.folder / name).mkdir(parents=True)
    yard.save(name, ClusterRecord(slot))


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
            with pytest.raises(Terminal, match="is not trusted"):
                await api.get("/readyz")
    assert list(tmp_path.iterdir()) == []
    assert running(tmp_path / "second") == []
    assert {process.part for process in running(cluster.layout.folder)} >= {"etcd", "kube-apiserver"}


async def test_clusters_that_come_at_once_take_different_slots(tmp_path: Path):
    def claim(number: int) -> int:
        # Each kept in another place, as those of different users.
        folder = tmp_path / f"home{number}" / "cluster"
        folder.mkdir(parents=True)
        return claim_slot(tmp_path / "claims", folder, UndoLog(folder))

    with ThreadPoolExecutor(8) as pool:
        slots = list(pool.map(claim, range(8)))
    assert len(set(slots)) == 8


async def test_a_slot_is_claimed_again_after_a_restart_unless_another_has_it(tmp_path: Path):
    claims, yard = tmp_path / "claims", _yard(tmp_path / "yard")
    first, second = (yard.folder / name for name in ("first", "second"))
    for folder in (first, second):
        folder.mkdir(parents=True)
    slot = claim_slot(claims, first, UndoLog(first))
    # What a restart leaves of the folder of claims.
    (claims / str(slot)).unlink()
    keep_slot(claims, first, slot, UndoLog(first))
    assert (claims / str(slot)).readlink() == first
    (claims / str(slot)).unlink()
    assert claim_slot(claims, second, UndoLog(second)) == slot
    with pytest.raises(Conflict, match="another cluster has the addresses of first") as caught:
        keep_slot(claims, first, slot, UndoLog(first))
    assert "drydock down --name first" in caught.value.hint
    assert (claims / str(slot)).readlink() == second


async def test_a_cluster_whose_slot_is_anothers_goes_without_touching_what_that_one_made(tmp_path: Path):
    claims = tmp_path / "claims"
    yard = ClusterManager(tmp_path / "yard", BinaryCache.of(), SystemClock(), claims)
    _pretend(yard, "first", slot=7)
    ledger, theirs = UndoLog(yard.folder / "first"), tmp_path / "theirs"
    ledger.record("claim", f"{claims / '7'} -> {yard.folder / 'first'}")
    ledger.record("folder", str(theirs))
    theirs.mkdir()
    claims.mkdir()
    (claims / "7").symlink_to(theirs)
    await yard.down("first")
    assert yard.names() == []
    assert theirs.exists()
    assert (claims / "7").readlink() == theirs


async def test_a_full_machine_says_so_until_a_cluster_is_gone(tmp_path: Path):
    claims, mine = tmp_path / "claims", tmp_path / "mine"
    claims.mkdir()
    mine.mkdir()
    for slot in range(SLOTS):
        (tmp_path / f"c{slot}").mkdir()
        (claims / str(slot)).symlink_to(tmp_path / f"c{slot}")
    ledger = UndoLog(mine)
    with pytest.raises(NoCapacity, match="room for no more"):
        claim_slot(claims, mine, ledger)
    assert ledger.effects() == []
    # Those of other tests and users are in use, whatever these links say.
    for slot in range(SLOTS):
        (tmp_path / f"c{slot}").rmdir()
    slot = claim_slot(claims, mine, ledger)
    assert claim_slot(claims, mine, ledger) == slot
    await ledger.undo_all(UNDO)
    assert not (claims / str(slot)).is_symlink()


async def test_undoing_a_claim_leaves_one_that_became_anothers(tmp_path: Path):
    (tmp_path / "0").symlink_to(tmp_path / "theirs")
    ledger = UndoLog(tmp_path)
    ledger.record("claim", f"{tmp_path / '0'} -> {tmp_path / 'mine'}")
    await ledger.undo_all(UNDO)
    assert (tmp_path / "0").is_symlink()


def test_no_two_slots_share_a_port_or_an_address():
    layouts = [Layout(Path("x"), slot) for slot in range(SLOTS)]
    ports = [layout.port(door) for layout in layouts for door in PortOffset]
    assert len(set(ports)) == len(ports)
    assert max(ports) < 32768
    assert len({layout.addresses.block for layout in layouts}) == SLOTS


async def test_a_name_that_cannot_be_one_is_refused_before_anything_is_made(tmp_path: Path):
    with pytest.raises(Invalid, match="cannot be a name"):
        await _yard(tmp_path).up("../elsewhere")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", ".", "..", "../notes", "{tmp}/notes", "Mine"])
async def test_a_name_that_cannot_be_one_is_refused_before_anything_is_removed(tmp_path: Path, name: str):
    yard = _yard(tmp_path / "yard")
    _pretend(yard, "mine", 0)
    for folder in (tmp_path / "notes", yard.folder / "Mine"):
        folder.mkdir()
        (folder / "kept").touch()
    with pytest.raises(Invalid, match="cannot be a name"):
        await yard.down(name.format(tmp=tmp_path))
    assert (tmp_path / "notes" / "kept").exists()
    assert (yard.folder / "Mine" / "kept").exists()
    assert yard.names() == ["mine"]


def test_an_unknown_cluster_is_answered_with_the_nearest(tmp_path: Path):
    yard = _yard(tmp_path)
    _pretend(yard, "training", 0)
    with pytest.raises(NotFound) as caught:
        yard.find("trainig")
    assert caught.value.hint == 'did you mean "training"?'


def test_a_cluster_made_of_ready_programs_is_used_with_them(tmp_path: Path):
    yard, ready = _yard(tmp_path / "yard"), tmp_path / "ready"
    ready.mkdir()
    (ready / "kubectl").touch(mode=0o755)
    (yard.folder / "mine").mkdir(parents=True)
    yard.save("mine", ClusterRecord(0, binaries=str(ready)))
    assert yard.find("mine").shelf.path("kubectl") == ready / "kubectl"


async def test_removing_what_is_not_there_is_no_error(tmp_path: Path):
    await _yard(tmp_path).down("nobody")
    assert list(tmp_path.iterdir()) == []


async def test_processes_of_a_folder_that_was_removed_by_hand_are_ended(tmp_path: Path):
    start(tmp_path / "gone", Component("waits", ("/bin/sleep", "1000")), tmp_path / "log")
    await _yard(tmp_path).down("gone")
    assert running(tmp_path / "gone") == []


def test_the_log_of_each_part_is_shown_by_its_name(tmp_path: Path):
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    yard = ClusterManager.of(env)
    _pretend(yard, "mine", 0)
    for path, words in (("logs/etcd.log", "of etcd\n"), ("nodes/node1/log/kubelet.log", "of a kubelet\n")):
        (yard.folder / "mine" / path).parent.mkdir(parents=True)
        (yard.folder / "mine" / path).write_text(words)

    def logs(part: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "neorion", "drydock", "logs", part, "--name", "mine"]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    assert logs("etcd").stdout == "of etcd\n"
    assert logs("node1/kubelet").stdout == "of a kubelet\n"
    assert 'did you mean "node1/kubelet"?' in logs("node1/kublet").stderr


def test_a_cluster_whose_making_was_cut_short_is_shown_and_says_what_to_do(tmp_path: Path):
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    _pretend(ClusterManager.of(env), "half", SLOTS)

    def drydock(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "neorion", "drydock", *words]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    (shown,) = json.loads(drydock("status", "-o", "json").stdout)
    assert (shown["nodes"], shown["running"], shown["missing"]) == (None, [], [*PARTS])
    assert "neorion drydock down --name half" in drydock("kubectl", "--name", "half", "get", "nodes").stderr
    assert "half is gone" in drydock("down", "--name", "half").stderr
