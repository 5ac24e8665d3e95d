"""What one attempt uses does not become its neighbours' trouble."""

import os
import resource
import subprocess
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from neorion.iris.adapters.runtimes.process import cgroups, procfs
from neorion.iris.adapters.runtimes.process.forkserver.server import RUN_GRACE_NS
from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.model import Resources
from neorion.iris.ports import ExitKind
from neorion.iris.testing.runtime_waits import ended, logged
from neorion.keel.base import Duration
from tests.iris.runtimes.conftest import Orders, forkserver
from tests.iris.runtimes.test_calls import log_of, run, value_of

pytestmark = pytest.mark.anyio
MIB = 1 << 20
SHARED = Path(f"/dev/shm/neorion-test-{os.getpid()}")  # noqa: S108 -- memory that outlives its writer is the point
# In the group for processes, wherever that is mounted.
MAKE_A_GROUP = """
for group in $(grep -o '/.*/task-.*' /proc/self/cgroup); do
    mkdir /sys/fs/cgroup$group/below || mkdir /sys/fs/cgroup/pids$group/below
done 2>/dev/null
"""


def grouped(root: Path) -> bool:
    """Whether the fork server of this directory may make control groups; it says so in its log where it may not."""
    return "control groups" not in (root / "forkserver.log").read_text()


async def test_out_of_memory_is_told_from_a_kill(runtime: ProcessRuntime, orders: Orders, root: Path):
    def greedy() -> int:
        return len(bytearray(512 * MIB))

    end = await run(runtime, replace(orders.call(greedy), resources=Resources(memory=128 * MIB)))
    if grouped(root):
        assert (end.kind, end.code) == (ExitKind.OUT_OF_MEMORY, 9)
        assert "memory" in end.message
    else:
        # Resource limits make the allocation fail instead, which the task itself sees.
        assert (end.kind, end.code) == (ExitKind.EXIT, 1)
        with pytest.raises(MemoryError):
            value_of(end)
    kill = await run(runtime, replace(orders.shell("kill -9 $$"), resources=Resources(memory=128 * MIB)))
    assert (kill.kind, kill.code) == (ExitKind.SIGNAL, 9)


async def test_a_child_out_of_memory_names_the_cause_too(runtime: ProcessRuntime, orders: Orders, root: Path):
    order = replace(
        orders.shell("python -c 'len(bytearray(512 << 20))'; exit 3"), resources=Resources(memory=128 * MIB)
    )
    end = await run(runtime, order)
    assert (end.kind, end.code) == (ExitKind.OUT_OF_MEMORY if grouped(root) else ExitKind.EXIT, 3)


async def test_within_its_limits_a_task_notices_nothing(runtime: ProcessRuntime, orders: Orders):
    order = replace(
        orders.call(lambda: sum(range(1000))), resources=Resources(cpu_milli=500, memory=256 * MIB)
    )
    assert value_of(await run(runtime, order)) == 499_500


async def test_a_fork_bomb_is_contained_and_ended(runtime: ProcessRuntime, orders: Orders, root: Path):
    if not grouped(root):
        # Never set off where nothing contains it: the operator is warned instead, and the next test sees the rlimit.
        assert "tasks get resource limits" in (root / "forkserver.log").read_text()
        return
    order = replace(
        orders.shell("f() { f | f & }; echo ready; f; while :; do sleep 1000; done"),
        resources=Resources(cpu_milli=100, memory=64 * MIB),
        run_limit=Duration.of(seconds=1),
    )
    await runtime.start(order)
    await logged(runtime, order.attempt, "ready")
    with anyio.fail_after(60):
        assert (await run(runtime, orders.call(lambda: 1))).well
        end = await ended(runtime, order.attempt)
    assert end.kind in {ExitKind.TIMED_OUT, ExitKind.OUT_OF_MEMORY}
    assert procfs.children(forkserver(root)) == set()


async def test_a_task_whose_time_is_over_may_clean_up(runtime: ProcessRuntime, orders: Orders):
    order = replace(
        orders.shell("trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done"),
        run_limit=Duration.of(ms=500),
    )
    await runtime.start(order)
    with anyio.fail_after(60):
        end = await ended(runtime, order.attempt)
    assert end.kind is ExitKind.TIMED_OUT
    assert log_of(runtime, order).endswith("saved\n")


async def test_a_task_whose_time_is_over_and_that_goes_on_is_killed(runtime: ProcessRuntime, orders: Orders):
    order = replace(
        orders.shell("trap '' TERM; echo ready; while :; do sleep 0.1; done"), run_limit=Duration.of(ms=500)
    )
    began = anyio.current_time()
    await runtime.start(order)
    with anyio.fail_after(80):
        end = await ended(runtime, order.attempt)
    assert end.kind is ExitKind.TIMED_OUT
    assert anyio.current_time() - began > RUN_GRACE_NS / 1e9


async def test_the_kernel_holds_a_task_to_what_it_asked_for(
    runtime: ProcessRuntime, orders: Orders, root: Path
):
    def look() -> dict[str, tuple[int, int]]:
        return {name: resource.getrlimit(getattr(resource, name)) for name in ("RLIMIT_DATA", "RLIMIT_NPROC")}

    order = replace(
        orders.shell("echo ready; sleep 1000"), resources=Resources(cpu_milli=500, memory=64 * MIB)
    )
    await runtime.start(order)
    await logged(runtime, order.attempt, "ready")
    (task,) = procfs.children(forkserver(root))
    settings, folders = held(task), groups_of(task)
    if grouped(root):
        assert settings["pids.max"] == str(cgroups.pids_max(500))
        assert str(64 * MIB) in (settings.get("memory.limit_in_bytes"), settings.get("memory.max"))
        assert (settings.get("cpu.shares"), settings.get("cpu.weight")) in [("512", None), (None, "50")]
    else:
        found = value_of(await run(runtime, replace(orders.call(look), resources=order.resources)))
        assert found["RLIMIT_DATA"] == (64 * MIB, 64 * MIB)
        assert found["RLIMIT_NPROC"][1] <= cgroups.PIDS_MAX
    await runtime.stop(order.attempt, Duration(0))
    await ended(runtime, order.attempt)
    if grouped(root):
        assert not any(folder.exists() for folder in folders)


async def test_a_group_is_used_again_by_whoever_asks_for_the_same(
    runtime: ProcessRuntime, orders: Orders, root: Path
):
    first = await group_after(runtime, orders, "true", 64 * MIB)
    if grouped(root):
        assert (await group_after(runtime, orders, "true", 32 * MIB)) != first
        assert (await group_after(runtime, orders, "true", 64 * MIB)) == first


@pytest.mark.parametrize(
    "change",
    [
        "python -c 'bytearray(512 << 20)' || true",
        f"head -c 8388608 /dev/zero > {SHARED}",
        MAKE_A_GROUP,
    ],
    ids=["out of memory", "left in memory", "a group below"],
)
async def test_a_group_that_a_task_changed_is_nobody_elses(
    runtime: ProcessRuntime, orders: Orders, root: Path, change: str
):
    changed = await group_after(runtime, orders, change, 64 * MIB)
    try:
        if grouped(root):
            assert (await group_after(runtime, orders, "true", 64 * MIB)) != changed
            assert left_of(changed) == []
    finally:
        SHARED.unlink(missing_ok=True)


def left_of(groups: str) -> list[Path]:
    paths = [line.split(":", 2)[2].lstrip("/") for line in groups.splitlines()]
    return [mount / path for path in paths for mount in cgroups._mounts().values() if (mount / path).exists()]


async def group_after(runtime: ProcessRuntime, orders: Orders, script: str, memory: int) -> str:
    """The groups of a task that does this."""
    order = replace(orders.shell(f"{script}\ncat /proc/self/cgroup"), resources=Resources(memory=memory))
    assert (await run(runtime, order)).well
    return "\n".join(line for line in log_of(runtime, order).splitlines() if "/task-" in line)


def test_few_groups_wait_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cgroups, "IDLE_MAX", 2)
    spare = cgroups.CgroupCache(cgroups.CgroupManager(2, *[str(tmp_path)] * 3))
    names = [spare.take(cgroups.ResourceLimits(memory, 0)) for memory in (16, 32, 64)]
    for name in names:
        for file, text in (("cgroup.procs", ""), ("memory.current", "1"), ("memory.events", "oom_kill 0")):
            (tmp_path / name / file).write_text(text)
        spare.release(name)
    assert [spare.take(cgroups.ResourceLimits(memory, 0)) for memory in (64, 32)] == [names[2], names[1]]
    assert spare.take(cgroups.ResourceLimits(16, 0)) not in names


def test_what_the_dead_left_is_cleared_away_and_what_the_living_have_is_not(tmp_path: Path):
    dead = subprocess.Popen(["true"])
    dead.wait()
    own = tmp_path / f"iris-{os.getpid()}"
    kept = {own, tmp_path / "iris-1", tmp_path / "iris-of-somebody", tmp_path / "other"}
    for path in (*kept, tmp_path / f"iris-{dead.pid}" / "attempt-1"):
        path.mkdir(parents=True)
    cgroups.CgroupManager(2, str(own), str(own), str(own)).sweep_abandoned()
    assert set(tmp_path.iterdir()) == kept


def held(pid: int) -> dict[str, str]:
    """The settings of all control groups of a process, by the names of their files."""
    names = ("pids.max", "memory.max", "memory.limit_in_bytes", "cpu.shares", "cpu.weight")
    paths = [folder / name for folder in groups_of(pid) for name in names]
    return {path.name: path.read_text().strip() for path in paths if path.exists()}


def groups_of(pid: int) -> list[Path]:
    """Those that were made for it."""
    mounts, found = cgroups._mounts(), list[Path]()
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        found += [mounts[one] / path.lstrip("/") for one in controllers.split(",") if one in mounts]
    return [folder for folder in found if folder.name.startswith("task-")]


def test_groups_of_the_second_version_are_one_directory(tmp_path: Path):
    groups = cgroups.CgroupManager(2, str(tmp_path), str(tmp_path), str(tmp_path))
    groups.make("attempt-1", cgroups.ResourceLimits(memory=1000, cpu_milli=2500))
    groups.join("attempt-1")
    written = {path.name: path.read_text() for path in (tmp_path / "attempt-1").iterdir()}
    assert written == {
        "pids.max": str(cgroups.pids_max(2500)),
        "memory.max": "1000",
        "cpu.weight": "250",
        "cgroup.procs": "0",
    }
    assert not groups.ran_out_of_memory("attempt-1")
    (tmp_path / "attempt-1" / "memory.events").write_text("low 0\noom 3\noom_kill 1\n")
    assert groups.ran_out_of_memory("attempt-1")
