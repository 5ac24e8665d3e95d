"""Deaths: of the worker, of the fork server, of the lease."""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from neorion.iris.adapters.runtimes.process import procfs
from neorion.iris.adapters.runtimes.process.result_file import load
from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.model import AttemptId
from neorion.iris.ports import ExitKind, Phase
from neorion.iris.testing.runtime_waits import ended, logged, written
from neorion.keel.base import Conflict, Duration, Invalid, Retry
from neorion.keel.clock import SystemClock
from tests.iris.runtimes.conftest import LEASE, Orders, forkserver, gone
from tests.iris.runtimes.test_trees import daemon

pytestmark = pytest.mark.anyio

# A worker that starts one attempt and then waits for the end that the test has in mind for it.
WORKER = """
import pathlib, pickle, signal, sys
import anyio
from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock

async def main():
    async with ProcessRuntime(pathlib.Path(sys.argv[1]), SystemClock()) as runtime:
        await runtime.renew(Duration.of(minutes=10))
        await runtime.start(pickle.load(open(sys.argv[2], "rb")))
        print("started", flush=True)
        signal.pause()

anyio.run(main)
"""


@contextmanager
def worker(root: Path, order: Path) -> "Generator[subprocess.Popen[str]]":
    command = [sys.executable, "-c", WORKER, str(root), str(order)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        yield process


async def test_a_killed_worker_loses_no_task_and_no_exit_code(root: Path, orders: Orders, tmp_path: Path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    order = orders.shell(f"echo ready; read line < {fifo}; exit 42")
    (tmp_path / "order").write_bytes(pickle.dumps(order))
    with worker(root, tmp_path / "order") as process:
        process.kill()
    async with ProcessRuntime(root, SystemClock()) as adopted:
        (seen,) = await adopted.seen()
        assert (seen.attempt, seen.phase) == (order.attempt, Phase.RUNNING)
        await logged(adopted, order.attempt, "ready")
        await anyio.to_thread.run_sync(fifo.write_text, "\n")
        assert (await ended(adopted, order.attempt)).code == 42


async def test_a_killed_fork_server_loses_its_tasks_and_leaves_no_process(
    runtime: ProcessRuntime, root: Path, orders: Orders, tmp_path: Path
):
    pids = [tmp_path / "one", tmp_path / "two"]
    tasks = [orders.call(daemon(stays=True), str(pids[0])), orders.program(daemon(stays=True), str(pids[1]))]
    kept = orders.call(lambda: "kept")
    await runtime.start(kept)
    await ended(runtime, kept.attempt)
    for order, pid in zip(tasks, pids, strict=True):
        pid.touch()
        await runtime.start(order)
        await written(pid, "\n")
    old = forkserver(root)
    os.kill(old, signal.SIGKILL)
    for order, pid in zip(tasks, pids, strict=True):
        assert (await ended(runtime, order.attempt)).kind is ExitKind.LOST
        # Told only when it is true: the next fork server waits for the burial.
        assert procfs.read(int(pid.read_text())) is None
    end = await ended(runtime, kept.attempt)
    assert end.result is not None
    assert load(end.result) == "kept"
    # The lease is the worker's, not the dead fork server's: the next task starts.
    after = orders.command("true")
    await runtime.start(after)
    assert (await ended(runtime, after.attempt)).well
    assert forkserver(root) != old


async def test_nothing_is_told_to_be_lost_before_it_is_gone(
    runtime: ProcessRuntime, root: Path, orders: Orders, tmp_path: Path
):
    pid = tmp_path / "pid"
    pid.touch()
    order = orders.program(daemon(stays=True), str(pid))
    await runtime.start(order)
    await written(pid, "\n")
    server = procfs.read(forkserver(root))
    assert server is not None
    os.kill(server.parent, signal.SIGSTOP)
    try:
        os.kill(server.pid, signal.SIGKILL)
        with anyio.move_on_after(1) as waited:
            await ended(runtime, order.attempt)
        assert waited.cancelled_caught
        assert procfs.read(int(pid.read_text())) is not None
    finally:
        os.kill(server.parent, signal.SIGCONT)
    assert (await ended(runtime, order.attempt)).kind is ExitKind.LOST
    assert procfs.read(int(pid.read_text())) is None


async def test_a_killed_guardian_takes_everything_with_it(
    runtime: ProcessRuntime, root: Path, orders: Orders
):
    order = orders.call(signal.pause)
    await runtime.start(order)
    server = forkserver(root)
    (task,) = (os.pidfd_open(pid) for pid in procfs.children(server))
    process = procfs.read(server)
    assert process is not None
    os.kill(process.parent, signal.SIGKILL)
    await gone(task)
    assert (await ended(runtime, order.attempt)).kind is ExitKind.LOST


async def test_the_lease_ends_tasks_even_when_the_fork_server_is_stuck(
    runtime: ProcessRuntime, root: Path, orders: Orders
):
    order = orders.call(signal.pause)
    await runtime.start(order)
    server = forkserver(root)
    (task,) = (os.pidfd_open(pid) for pid in procfs.children(server))
    await runtime.renew(Duration.of(ms=300))
    os.kill(server, signal.SIGSTOP)
    try:
        await gone(task)
    finally:
        os.kill(server, signal.SIGCONT)
    assert (await ended(runtime, order.attempt)).kind is ExitKind.LOST


async def test_the_lease_ends_tasks_when_the_worker_is_dead(root: Path, orders: Orders):
    order = orders.call(signal.pause)
    async with ProcessRuntime(root, SystemClock()) as runtime:
        await runtime.renew(LEASE)
        await runtime.start(order)
        server = forkserver(root)
        parent, (task,) = os.pidfd_open(server), (os.pidfd_open(pid) for pid in procfs.children(server))
        await runtime.renew(Duration.of(ms=100))
    await gone(task)
    # With nothing left to look after, and nobody to look after it for, the fork server ends too.
    await gone(parent)
    async with ProcessRuntime(root, SystemClock()) as runtime:
        assert (await ended(runtime, order.attempt)).kind is ExitKind.LOST


async def test_of_two_workers_the_newer_one_stays(root: Path, orders: Orders):
    async def older() -> None:
        async with ProcessRuntime(root, SystemClock()) as first:
            connected.set()
            async for _ in first.changes():
                continue

    connected = anyio.Event()
    with pytest.RaisesGroup(pytest.RaisesExc(Conflict, match="taken over")):
        async with anyio.create_task_group() as group:
            group.start_soon(older)
            await connected.wait()
            async with ProcessRuntime(root, SystemClock()) as second:
                await second.renew(LEASE)
                await anyio.sleep_forever()
    async with ProcessRuntime(root, SystemClock()) as third:
        await third.renew(LEASE)
        await third.start(order := orders.command("true"))
        assert (await ended(third, order.attempt)).well


async def test_requests_without_an_answer_are_sent_again(runtime: ProcessRuntime, root: Path, orders: Orders):
    many = [orders.command("true") for _ in range(50)]
    async with anyio.create_task_group() as group:
        for order in many:
            group.start_soon(runtime.start, order)
        await anyio.lowlevel.checkpoint()
        os.kill(forkserver(root), signal.SIGKILL)
    ends = {(await ended(runtime, order.attempt)).kind for order in many}
    assert ends <= {ExitKind.EXIT, ExitKind.LOST}


async def test_everything_is_known_at_once_however_much_it_is(root: Path):
    names = {f"attempt-{number:040}" for number in range(3000)}
    for name in names:
        (root / "attempts" / name).mkdir(parents=True)
    async with ProcessRuntime(root, SystemClock()) as runtime:
        assert {seen.attempt for seen in await runtime.seen()} == names


async def test_leaving_ends_those_who_wait(root: Path, orders: Orders):
    errors = list[BaseException]()

    async def start(runtime: ProcessRuntime) -> None:
        try:
            await runtime.start(orders.command("true"))
        except Retry as error:
            errors.append(error)

    async def listen(runtime: ProcessRuntime) -> None:
        async for _ in runtime.changes():
            listening.set()

    listening = anyio.Event()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            async with ProcessRuntime(root, SystemClock()) as runtime:
                await runtime.renew(LEASE)
                group.start_soon(listen, runtime)
                await listening.wait()
                server = forkserver(root)
                os.kill(server, signal.SIGSTOP)
                group.start_soon(start, runtime)
                await anyio.lowlevel.checkpoint()
            os.kill(server, signal.SIGCONT)
    assert len(errors) == 1


async def test_a_folder_may_be_deeper_than_the_name_of_a_socket(tmp_path: Path, orders: Orders):
    order = orders.command("true")
    async with ProcessRuntime(tmp_path / ("x" * 120) / "runtime", SystemClock()) as runtime:
        await runtime.renew(LEASE)
        await runtime.start(order)
        end = await ended(runtime, order.attempt)
        assert end.well
        await runtime.renew(Duration(1))


@pytest.mark.parametrize("name", ["../escape", ".hidden", "a/b", "", "x" * 200, "a\0b"])
async def test_an_attempt_whose_id_is_no_file_name_is_refused(
    runtime: ProcessRuntime, orders: Orders, name: str
):
    with pytest.raises(Invalid):
        await runtime.start(replace(orders.command("true"), attempt=AttemptId(name)))
    assert await runtime.seen() == []
