"""What one attempt uses does not become its neighbours' trouble."""

import resource
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from neorion.iris.adapters.runtimes.process import limits, tree
from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.model import Resources
from neorion.iris.ports import EndKind
from neorion.iris.testing.runtime import ended, said
from neorion.keel.base import Duration
from tests.iris.runtimes.conftest import Orders, forkserver
from tests.iris.runtimes.test_calls import run, value_of

pytestmark = pytest.mark.anyio
MIB = 1 << 20


def grouped(root: Path) -> bool:
    """Whether the fork server of this directory may make control groups; it says so in its log where it may not."""
    return "control groups" not in (root / "forkserver.log").read_text()


async def test_out_of_memory_is_told_from_a_kill(runtime: ProcessRuntime, orders: Orders, root: Path):
    def greedy() -> int:
        return len(bytearray(512 * MIB))

    end = await run(runtime, replace(orders.call(greedy), resources=Resources(memory=128 * MIB)))
    if grouped(root):
        assert (end.kind, end.code) == (EndKind.OUT_OF_MEMORY, 9)
        assert "memory" in end.message
    else:
        # Resource limits make the allocation fail instead, which the task itself sees.
        assert (end.kind, end.code) == (EndKind.EXIT, 1)
        with pytest.raises(MemoryError):
            value_of(end)
    kill = await run(runtime, replace(orders.shell("kill -9 $$"), resources=Resources(memory=128 * MIB)))
    assert (kill.kind, kill.code) == (EndKind.SIGNAL, 9)


async def test_a_child_out_of_memory_names_the_cause_too(runtime: ProcessRuntime, orders: Orders, root: Path):
    order = replace(
        orders.shell("python -c 'len(bytearray(512 << 20))'; exit 3"), resources=Resources(memory=128 * MIB)
    )
    end = await run(runtime, order)
    assert (end.kind, end.code) == (EndKind.OUT_OF_MEMORY if grouped(root) else EndKind.EXIT, 3)


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
    await said(runtime, order.attempt, "ready")
    with anyio.fail_after(60):
        assert (await run(runtime, orders.call(lambda: 1))).well
        end = await ended(runtime, order.attempt)
    assert end.kind in {EndKind.TIMED_OUT, EndKind.OUT_OF_MEMORY}
    assert tree.children(forkserver(root)) == set()


async def test_the_kernel_holds_a_task_to_what_it_asked_for(
    runtime: ProcessRuntime, orders: Orders, root: Path
):
    def look() -> dict[str, tuple[int, int]]:
        return {name: resource.getrlimit(getattr(resource, name)) for name in ("RLIMIT_DATA", "RLIMIT_NPROC")}

    order = replace(
        orders.shell("echo ready; sleep 1000"), resources=Resources(cpu_milli=500, memory=64 * MIB)
    )
    await runtime.start(order)
    await said(runtime, order.attempt, "ready")
    (task,) = tree.children(forkserver(root))
    settings = held(task)
    if grouped(root):
        assert settings["pids.max"] == str(limits.pids_max(500))
        assert str(64 * MIB) in (settings.get("memory.limit_in_bytes"), settings.get("memory.max"))
        assert (settings.get("cpu.shares"), settings.get("cpu.weight")) in [("512", None), (None, "50")]
    else:
        found = value_of(await run(runtime, replace(orders.call(look), resources=order.resources)))
        assert found["RLIMIT_DATA"] == (64 * MIB, 64 * MIB)
        assert found["RLIMIT_NPROC"][1] <= limits.PIDS_MAX
    await runtime.stop(order.attempt, Duration(0))
    await ended(runtime, order.attempt)
    assert held_of(order.attempt) == []


def held(pid: int) -> dict[str, str]:
    """The settings of all control groups of a process, by the names of their files."""
    mounts, found = limits._mounts(), dict[str, str]()
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller in mounts:
                folder = mounts[controller] / path.lstrip("/")
                for name in ("pids.max", "memory.max", "memory.limit_in_bytes", "cpu.shares", "cpu.weight"):
                    if (folder / name).exists():
                        found[name] = (folder / name).read_text().strip()
    return found


def held_of(attempt: str) -> list[Path]:
    return [found for mount in set(limits._mounts().values()) for found in mount.rglob(str(attempt))]


def test_groups_of_the_second_version_are_one_directory(tmp_path: Path):
    groups = limits.Groups(2, str(tmp_path), str(tmp_path), str(tmp_path))
    groups.make("attempt-1", limits.Asked(memory=1000, cpu_milli=2500))
    groups.join("attempt-1")
    written = {path.name: path.read_text() for path in (tmp_path / "attempt-1").iterdir()}
    assert written == {
        "pids.max": str(limits.pids_max(2500)),
        "memory.max": "1000",
        "cpu.weight": "250",
        "cgroup.procs": "0",
    }
    assert not groups.ran_out_of_memory("attempt-1")
    (tmp_path / "attempt-1" / "memory.events").write_text("low 0\noom 3\noom_kill 1\n")
    assert groups.ran_out_of_memory("attempt-1")
