"""Whatever a task starts ends with it."""

import os
import signal
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from neorion.iris.adapters.runtimes.process import procfs
from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.model import AttemptId
from neorion.iris.ports import ExitKind
from neorion.iris.testing.runtime_waits import ended, logged, written
from neorion.keel.base import Duration
from tests.iris.runtimes.conftest import Orders, forkserver

pytestmark = pytest.mark.anyio


def daemon(*, stays: bool) -> Callable[[str], None]:
    """A function that leaves a daemon behind, by the book: two forks, a session of its own, deaf to SIGTERM.

    It returns when the daemon has written its pid, or stays.
    """

    def leave(path: str) -> None:
        ready, tell = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                os.chdir("/")
                with open(path, "w") as file:  # noqa: PTH123 -- pickled with the function
                    file.write(f"{os.getpid()}\n")
                os.write(tell, b"!")
                while True:
                    signal.pause()
            os._exit(0)
        os.wait()
        os.read(ready, 1)
        while stays:
            signal.pause()

    return leave


def alive(path: Path) -> bool:
    process = procfs.read(int(path.read_text()))
    return process is not None and not process.dead


@pytest.mark.parametrize("grace", [Duration(0), Duration.of(ms=100)])
@pytest.mark.parametrize("kind", ["call", "program"])
async def test_stopping_ends_daemons_and_those_who_trap_the_signal(
    runtime: ProcessRuntime, orders: Orders, tmp_path: Path, grace: Duration, kind: str
):
    pid = tmp_path / "pid"
    pid.touch()
    order = getattr(orders, kind)(daemon(stays=True), str(pid))
    await runtime.start(order)
    await written(pid, "\n")
    with anyio.fail_after(grace.seconds + 1):
        await runtime.stop(order.attempt, grace)
        assert (await ended(runtime, order.attempt)).kind is ExitKind.STOPPED
    assert not alive(pid)


@pytest.mark.parametrize("kind", ["call", "program"])
async def test_a_daemon_left_behind_ends_with_its_task(
    runtime: ProcessRuntime, orders: Orders, tmp_path: Path, kind: str
):
    order = getattr(orders, kind)(daemon(stays=False), str(tmp_path / "pid"))
    await runtime.start(order)
    assert (await ended(runtime, order.attempt)).well
    assert not alive(tmp_path / "pid")


@pytest.mark.parametrize("kind", ["call", "program"])
async def test_the_daemon_of_one_task_outlives_the_end_of_another(
    runtime: ProcessRuntime, orders: Orders, tmp_path: Path, kind: str
):
    pid = tmp_path / "pid"
    pid.touch()
    lasting = getattr(orders, kind)(daemon(stays=True), str(pid))
    await runtime.start(lasting)
    await written(pid, "\n")
    for order in (orders.command("true"), orders.call(lambda: None)):
        await runtime.start(order)
        assert (await ended(runtime, order.attempt)).well
    assert alive(pid)


async def test_no_zombie_and_no_descriptor_is_left(runtime: ProcessRuntime, orders: Orders, root: Path):
    async def run(count: int) -> None:
        waiting = set[AttemptId]()
        async with aclosing(runtime.changes()) as changes:
            for number in range(count):
                # Every tenth leaves an orphan.
                order = orders.shell("true & true") if number % 10 == 0 else orders.command("true")
                order = orders.call(lambda: None) if number % 2 else order
                waiting.add(order.attempt)
                await runtime.start(order)
            async for batch in changes:
                waiting -= {seen.attempt for seen in batch if seen.end is not None}
                if not waiting:
                    return

    server = forkserver(root)
    await run(20)
    before = descriptors(server)
    for _ in range(5):
        await run(200)
    assert descriptors(server) == before
    assert procfs.children(server) == set()


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def relays(generations: int) -> Callable[[str], None]:
    """Short-lived processes, each forking the next: what is read from /proc is always out of date.

    Whoever comes to the last generation, after some seconds, says so.
    """

    def relay(path: str) -> None:
        for _ in range(8):
            if os.fork() == 0:
                os.setsid()
                for _ in range(generations):
                    if os.fork():
                        os._exit(0)
                with open(path, "a") as file:  # noqa: PTH123 -- pickled with the function
                    file.write("outran\n")
                os._exit(0)
        with open(path, "a") as file:  # noqa: PTH123 -- as above
            file.write("running\n")
        while True:
            signal.pause()

    return relay


async def test_killing_outruns_forking(runtime: ProcessRuntime, orders: Orders, tmp_path: Path):
    mark = tmp_path / "mark"
    mark.touch()
    order = orders.call(relays(2_000), str(mark))
    await runtime.start(order)
    await written(mark, "running")
    with anyio.fail_after(60):
        await runtime.stop(order.attempt, Duration(0))
        assert (await ended(runtime, order.attempt)).kind is ExitKind.STOPPED
    assert procfs.children(forkserver(tmp_path / "runtime")) == set()
    assert mark.read_text() == "running\n"


async def test_a_guardian_outruns_forking_too(runtime: ProcessRuntime, orders: Orders, tmp_path: Path):
    mark = tmp_path / "mark"
    mark.touch()
    order = orders.call(relays(2_000), str(mark))
    await runtime.start(order)
    await written(mark, "running")
    server = procfs.read(forkserver(tmp_path / "runtime"))
    assert server is not None
    with os.fdopen(os.pidfd_open(server.parent)) as guardian:
        os.kill(server.pid, signal.SIGKILL)
        with anyio.fail_after(60):
            await anyio.wait_readable(guardian)
    assert mark.read_text() == "running\n"


async def test_stats_count_children_in(runtime: ProcessRuntime, orders: Orders):
    order = orders.shell("sleep 1000 & sleep 1000 & echo ready; wait")
    await runtime.start(order)
    await logged(runtime, order.attempt, "ready")
    stats = (await runtime.stats())[order.attempt]
    assert stats.processes == 3
    assert stats.memory_bytes > 100_000
