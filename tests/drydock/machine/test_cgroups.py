"""Control groups: on a made-up tree of each version, and on this machine's own."""

from pathlib import Path

import anyio
import pytest

from neorion.drydock.machine import Cgroups
from neorion.keel.clock import SystemClock

pytestmark = pytest.mark.anyio


def _first_version(root: Path) -> Cgroups:
    for name in ("cpuset", "pids"):
        (root / name).mkdir(parents=True)
    (root / "cpuset/cpuset.cpus").write_text("0-3\n")
    (root / "cpuset/cpuset.mems").write_text("0\n")
    (root / "cpu").symlink_to(root / "pids")
    return Cgroups(root)


def test_every_hierarchy_of_the_first_version_gets_the_group_once(tmp_path: Path):
    groups = _first_version(tmp_path)
    groups.make("drydock0/node1")
    assert [path.name for path in groups.hierarchies()] == ["cpuset", "pids"]
    assert groups.entries("drydock0/node1") == [
        tmp_path / "cpuset/drydock0/node1/cgroup.procs",
        tmp_path / "pids/drydock0/node1/cgroup.procs",
    ]


def test_a_group_of_the_first_version_gets_its_parents_processors(tmp_path: Path):
    groups = _first_version(tmp_path)
    group = tmp_path / "cpuset/drydock0"
    group.mkdir()
    for name in ("cpuset.cpus", "cpuset.mems"):
        (group / name).write_text("\n")
    groups.make("drydock0")
    assert (group / "cpuset.cpus").read_text() == "0-3\n"
    assert (group / "cpuset.mems").read_text() == "0\n"


def test_a_unified_hierarchy_is_told_to_hand_its_controllers_down(tmp_path: Path):
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids rdma\n")
    (tmp_path / "cgroup.subtree_control").touch()
    groups = Cgroups(tmp_path)
    groups.make("drydock0")
    assert groups.hierarchies() == [tmp_path]
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"


@pytest.mark.needs("root")
async def test_ending_a_group_ends_everybody_in_it_and_below(tmp_path: Path):
    groups, name = Cgroups(), f"drydock-test-{tmp_path.name}"
    groups.make(f"{name}/inner")
    enter = " ".join(f"echo $$ > {entry};" for entry in groups.entries(f"{name}/inner"))
    # The shell goes on without its sleep, so that it can only be killed itself.
    script = f"{enter} echo in; while :; do sleep 1000; done"
    async with await anyio.open_process(["sh", "-c", script]) as process:
        assert process.stdout is not None
        await process.stdout.receive()
        assert process.pid in groups.pids(name)
        await groups.end(name, SystemClock())
        assert await process.wait() == -9
    assert groups.pids(name) == set()
    assert [hierarchy for hierarchy in groups.hierarchies() if (hierarchy / name).exists()] == []
    await groups.end(name, SystemClock())
