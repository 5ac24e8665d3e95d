"""Functions: whatever they return, raise or do to their process, the caller learns what it was."""

import asyncio
import atexit
import importlib
import logging
import logging.handlers
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest

from neorion.iris.adapters.runtimes.process.forkserver.attempt import NO_RESULT
from neorion.iris.adapters.runtimes.process.result_file import ResultStatus, load, read_head
from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.ports import AttemptExit, AttemptSpec, ExitKind
from neorion.iris.testing.runtime_waits import ended
from neorion.keel.base import Terminal
from tests.iris.runtimes.conftest import Orders

pytestmark = pytest.mark.anyio


async def run(runtime: ProcessRuntime, order: AttemptSpec) -> AttemptExit:
    await runtime.start(order)
    return await ended(runtime, order.attempt)


def log_of(runtime: ProcessRuntime, order: AttemptSpec) -> str:
    return runtime.log(order.attempt).read_text()


def value_of(end: AttemptExit) -> Any:
    assert end.result is not None
    return load(end.result)


@pytest.mark.parametrize(
    ("ending", "code"), [(None, 0), (0, 0), (3, 3), (256 + 7, 7), ("a message", 1)], ids=str
)
async def test_sys_exit_ends_as_a_program_would(
    runtime: ProcessRuntime, orders: Orders, ending: object, code: int
):
    order = orders.call(sys.exit, ending)
    end = await run(runtime, order)
    assert (end.kind, end.code) == (ExitKind.EXIT, code)
    if code:
        with pytest.raises(SystemExit):
            value_of(end)
    else:
        assert value_of(end) is None
    assert ("a message" in log_of(runtime, order)) == (ending == "a message")


async def test_a_process_that_ends_itself_has_no_result_and_did_not_end_well(
    runtime: ProcessRuntime, orders: Orders
):
    quiet, loud = await run(runtime, orders.call(os._exit, 0)), await run(runtime, orders.call(os._exit, 9))
    assert (quiet.kind, quiet.code, quiet.well, quiet.result) == (ExitKind.EXIT, NO_RESULT, False, None)
    assert "before its function returned" in quiet.message
    assert (loud.kind, loud.code, loud.result) == (ExitKind.EXIT, 9, None)


async def test_a_signal_to_itself_is_told(runtime: ProcessRuntime, orders: Orders):
    end = await run(runtime, orders.call(signal.raise_signal, signal.SIGSEGV))
    assert (end.kind, end.code) == (ExitKind.SIGNAL, signal.SIGSEGV)


async def test_an_interrupt_is_an_error_like_others(runtime: ProcessRuntime, orders: Orders):
    end = await run(runtime, orders.call(signal.raise_signal, signal.SIGINT))
    assert end.code == 1
    with pytest.raises(KeyboardInterrupt):
        value_of(end)


# Functions inside functions are pickled by value; the fork server could not import this file.
def lock() -> Callable[[], object]:
    def make() -> object:
        return threading.Lock()

    return make


def raises_when_pickled() -> Callable[[], object]:
    def make() -> object:
        class Trap:
            def __reduce__(self) -> str:
                raise RuntimeError("not with me")

        return Trap()

    return make


def exits_when_pickled() -> Callable[[], object]:
    def make() -> object:
        class Quitter:
            def __reduce__(self) -> str:
                raise SystemExit(0)

        return Quitter()

    return make


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lock(), "cannot pickle '_thread.lock'"),
        (raises_when_pickled(), "not with me"),
        (exits_when_pickled(), "SystemExit"),
    ],
    ids=["lock", "raises", "exits"],
)
async def test_a_value_that_cannot_be_pickled_is_a_failure_that_says_so(
    runtime: ProcessRuntime, orders: Orders, make: Callable[[], object], why: str
):
    order = orders.call(make)
    end = await run(runtime, order)
    assert (end.kind, end.code) == (ExitKind.EXIT, 1)
    with pytest.raises(Terminal, match=why) as caught:
        value_of(end)
    assert caught.value.code == "runtime.unpicklable"
    assert why in log_of(runtime, order)


async def test_an_error_that_cannot_be_pickled_keeps_its_words(runtime: ProcessRuntime, orders: Orders):
    def fails() -> None:
        class Picky(Exception):
            def __init__(self, one: str, two: str) -> None:
                super().__init__(f"{one} and {two}")
                self.lock = threading.Lock()

        raise Picky("salt", "pepper")

    end = await run(runtime, orders.call(fails))
    with pytest.raises(Terminal, match="salt and pepper"):
        value_of(end)
    assert end.result is not None
    head = read_head(end.result)
    assert head.status is ResultStatus.ERROR
    assert "in fails" in head.text


async def test_a_large_value_arrives_whole(runtime: ProcessRuntime, orders: Orders):
    end = await run(runtime, orders.call(lambda: bytes(range(256)) * (64 << 12)))
    value = value_of(end)
    assert isinstance(value, bytes)
    assert len(value) == 64 << 20


async def test_threads_pools_of_processes_and_loops_work_inside(runtime: ProcessRuntime, orders: Orders):
    def busy() -> list[int]:
        async def looped() -> int:
            process = await asyncio.create_subprocess_exec("sh", "-c", "exit 4")
            return await process.wait()

        with ThreadPoolExecutor(2) as threads:
            threaded = sum(threads.map(int, ["1", "2"]))
        fork = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(2, mp_context=fork) as processes:
            forked = sum(processes.map(int, ["3", "4"]))
        spawn = multiprocessing.get_context("spawn")
        queue = spawn.Queue()
        process = spawn.Process(target=queue.put, args=(5,))
        process.start()
        spawned = queue.get()
        process.join()
        return [
            threaded,
            forked,
            spawned,
            asyncio.run(looped()),
            subprocess.run(["true"], check=True).returncode,
        ]

    assert value_of(await run(runtime, orders.call(busy))) == [3, 7, 5, 4, 0]


@pytest.mark.parametrize("pool", ["", "warm"])
async def test_a_task_with_threads_forks_as_any_program(runtime: ProcessRuntime, orders: Orders, pool: str):
    def forks() -> tuple[int, int]:
        handler = logging.StreamHandler()
        logging.getLogger().addHandler(handler)
        held, over = threading.Event(), threading.Event()

        def writes() -> None:
            with handler.lock or threading.Lock():
                held.set()
                over.wait()

        thread = threading.Thread(target=writes)
        thread.start()
        held.wait()
        child = os.fork()
        if not child:
            signal.alarm(20)
            # The thread that holds the lock is not here.
            logging.getLogger("task").warning("said by the fork")
            os._exit(threading.active_count())
        status = os.waitpid(child, 0)[1]
        over.set()
        thread.join()
        logging.getLogger().removeHandler(handler)
        return os.waitstatus_to_exitcode(status), threading.active_count()

    order = orders.call(forks, pool=pool)
    assert value_of(await run(runtime, order)) == (1, 1)
    assert "said by the fork" in log_of(runtime, order)


async def test_a_thread_that_outlives_the_function_is_waited_for(runtime: ProcessRuntime, orders: Orders):
    def leaves_a_thread() -> None:
        atexit.register(print, "at exit")
        go = threading.Event()
        threading.Thread(target=lambda: (go.wait(), os.write(1, b"in the thread\n"))).start()
        go.set()

    order = orders.call(leaves_a_thread)
    assert (await run(runtime, order)).well
    assert log_of(runtime, order) == "in the thread\nat exit\n"


async def test_log_handlers_that_keep_records_give_them_out_at_the_end(
    runtime: ProcessRuntime, orders: Orders
):
    def logs() -> None:
        kept = logging.handlers.MemoryHandler(1000, target=logging.StreamHandler(sys.stdout))
        logging.getLogger("mine").addHandler(kept)
        # An error would be given out at once.
        logging.getLogger("mine").warning("kept until the end")

    order = orders.call(logs)
    assert (await run(runtime, order)).well
    assert log_of(runtime, order) == "kept until the end\n"


async def test_a_function_and_its_arguments_may_be_larger_than_one_reading(
    runtime: ProcessRuntime, orders: Orders
):
    carried = os.urandom(1 << 17)

    def joined(given: bytes) -> bytes:
        return carried + given

    order = orders.call(joined, b"x" * (1 << 16))
    assert value_of(await run(runtime, order)) == carried + b"x" * (1 << 16)


async def test_chance_differs_from_task_to_task(runtime: ProcessRuntime, orders: Orders):
    def chance() -> tuple[float, bytes, int]:
        chance = importlib.import_module("random")
        return chance.random(), os.urandom(8), uuid.uuid1().int

    for values in zip(*[value_of(await run(runtime, orders.call(chance))) for _ in range(3)], strict=True):
        assert len(set(values)) == 3


async def test_what_is_printed_without_an_end_of_line_is_in_the_log(runtime: ProcessRuntime, orders: Orders):
    order = orders.call(print, "no end")
    assert (await run(runtime, order)).well
    assert log_of(runtime, order) == "no end\n"


def spoil(order: AttemptSpec) -> None:
    assert order.function is not None
    Path(order.function).write_bytes(b"cno_such_module\nf\n.")


async def test_a_function_that_cannot_be_loaded_is_an_error_with_its_reason(
    runtime: ProcessRuntime, orders: Orders
):
    order = orders.call(print)
    spoil(order)
    end = await run(runtime, order)
    assert end.code == 1
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        value_of(end)


async def test_logging_is_as_python_leaves_it(runtime: ProcessRuntime, orders: Orders):
    def logs() -> None:
        logging.basicConfig(format="mine: %(message)s")
        logging.getLogger("any").warning("hello")

    order = orders.call(logs)
    await run(runtime, order)
    assert log_of(runtime, order) == "mine: hello\n"


async def test_many_started_together_have_a_directory_each_and_leave_none(
    runtime: ProcessRuntime, root: Path, orders: Orders
):
    together = [orders.call(os.getcwd) for _ in range(40)]
    async with anyio.create_task_group() as group:
        for order in together:
            group.start_soon(runtime.start, order)
    ends = [await ended(runtime, order.attempt) for order in together]
    assert len({value_of(end) for end in ends}) == len(together)
    async with anyio.create_task_group() as group:
        for order in together:
            group.start_soon(runtime.forget, order.attempt)
    assert list((root / "attempts").iterdir()) == []
