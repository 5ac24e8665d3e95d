"""Warm processes: shared one after the other, each attempt with a log and an end of its own."""

import builtins
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from neorion.iris.adapters.runtimes.process import procfs
from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.model import TaskEnvironment
from neorion.iris.ports import AttemptSpec, ExitKind
from neorion.iris.testing.runtime_waits import ended, logged
from neorion.keel.base import Duration
from tests.iris.runtimes.conftest import Orders, forkserver, gone
from tests.iris.runtimes.test_calls import log_of, run, value_of

pytestmark = pytest.mark.anyio


def counting() -> Callable[[str], tuple[int, int]]:
    def count(word: str) -> tuple[int, int]:
        """Its process, and the how-manieth of this process it is."""
        builtins.calls = getattr(builtins, "calls", 0) + 1  # pyright: ignore[reportAttributeAccessIssue] -- kept by the process
        print(word)  # noqa: T201 -- for the log
        sys.stderr.write(f"{word} again")
        return os.getpid(), builtins.calls  # pyright: ignore[reportAttributeAccessIssue] -- as above

    return count


async def test_attempts_of_a_pool_share_a_process_and_no_log(runtime: ProcessRuntime, orders: Orders):
    many = [orders.call(counting(), f"word{number}", pool="p") for number in range(4)]
    found = [value_of(await run(runtime, order)) for order in many]
    assert len({pid for pid, _ in found}) == 1
    assert [count for _, count in found] == [1, 2, 3, 4]
    assert [log_of(runtime, order) for order in many] == [
        f"word{number}\nword{number} again" for number in range(4)
    ]


async def test_other_pools_and_other_surroundings_have_other_processes(
    runtime: ProcessRuntime, orders: Orders
):
    same = orders.call(counting(), "a", pool="p")
    others = [
        orders.call(counting(), "b", pool="q"),
        replace(orders.call(counting(), "c", pool="p"), environment=TaskEnvironment(setup=("true",))),
        orders.call(counting(), "d"),
    ]
    pids = [value_of(await run(runtime, order))[0] for order in (same, *others)]
    assert len(set(pids)) == 4


async def test_an_idle_process_does_not_keep_gpus_that_are_anothers(runtime: ProcessRuntime, orders: Orders):
    def with_gpus(gpus: str, pool: str = "") -> AttemptSpec:
        return replace(orders.call(os.getpid, pool=pool), variables=(("CUDA_VISIBLE_DEVICES", gpus),))

    first, second = [value_of(await run(runtime, with_gpus(gpu, f"map/{gpu}"))) for gpu in "01"]
    handle = os.pidfd_open(first)
    await run(runtime, with_gpus("2,0"))
    # It would wait for half a minute; of a process that has ended one can read.
    with anyio.fail_after(20):
        await anyio.wait_readable(handle)
    os.close(handle)
    assert value_of(await run(runtime, with_gpus("1", "map/1"))) == second


async def test_each_attempt_has_its_own_variables(runtime: ProcessRuntime, orders: Orders):
    def look() -> tuple[str | None, str]:
        return os.environ.get("ONCE"), os.environ["IRIS_ATTEMPT_UID"]

    first = replace(orders.call(look, pool="p"), variables=(("ONCE", "yes"),))
    second = orders.call(look, pool="p")
    assert value_of(await run(runtime, first)) == ("yes", first.attempt)
    assert value_of(await run(runtime, second)) == (None, second.attempt)


async def test_attempts_at_the_same_time_have_processes_of_their_own(
    runtime: ProcessRuntime, orders: Orders, tmp_path: Path
):
    def meet(mine: str, other: str) -> int:
        for name in sorted((mine, other)):
            with open(name, "w" if name == mine else "r"):  # noqa: PTH123 -- opening one waits for the other
                pass
        return os.getpid()

    names = [str(tmp_path / "left"), str(tmp_path / "right")]
    for name in names:
        os.mkfifo(name)
    both = [orders.call(meet, *names, pool="p"), orders.call(meet, *names[::-1], pool="p")]
    for order in both:
        await runtime.start(order)
    pids = {value_of(await ended(runtime, order.attempt)) for order in both}
    assert len(pids) == 2


@pytest.mark.parametrize("crash", [lambda: os._exit(9), lambda: signal.raise_signal(signal.SIGKILL)])
async def test_a_crash_takes_down_the_attempt_and_no_other(
    runtime: ProcessRuntime, orders: Orders, crash: Callable[[], None]
):
    first = value_of(await run(runtime, orders.call(counting(), "a", pool="p")))
    end = await run(runtime, orders.call(crash, pool="p"))
    assert (end.kind, end.code) in {(ExitKind.EXIT, 9), (ExitKind.SIGNAL, signal.SIGKILL)}
    after = value_of(await run(runtime, orders.call(counting(), "b", pool="p")))
    assert after[0] != first[0]
    assert after[1] == 1


async def test_an_error_or_an_exit_leaves_the_process_for_the_next(runtime: ProcessRuntime, orders: Orders):
    def leaves() -> None:
        raise SystemExit(4)

    def fails() -> None:
        raise ValueError("no")

    first = value_of(await run(runtime, orders.call(counting(), "a", pool="p")))
    assert (await run(runtime, orders.call(leaves, pool="p"))).code == 4
    assert (await run(runtime, orders.call(fails, pool="p"))).code == 1
    assert value_of(await run(runtime, orders.call(counting(), "b", pool="p"))) == (first[0], 2)


async def test_stopping_an_attempt_ends_its_process_and_all_below(runtime: ProcessRuntime, orders: Orders):
    def stays() -> None:
        if os.fork() == 0:
            os.setsid()
        else:
            print("ready", flush=True)  # noqa: T201 -- for the log
        while True:
            signal.pause()

    order = orders.call(stays, pool="p")
    await runtime.start(order)
    await logged(runtime, order.attempt, "ready")
    assert (await runtime.stats())[order.attempt].processes == 2
    with anyio.fail_after(60):
        await runtime.stop(order.attempt, Duration.of(ms=50))
        assert (await ended(runtime, order.attempt)).kind is ExitKind.STOPPED
    assert (await run(runtime, orders.call(counting(), "a", pool="p"))).well


async def test_a_pool_that_cannot_be_prepared_says_so_to_each_attempt(
    runtime: ProcessRuntime, orders: Orders
):
    for _ in range(2):
        order = replace(
            orders.call(counting(), "a", pool="p"), environment=TaskEnvironment(setup=("echo no; exit 1",))
        )
        end = await run(runtime, order)
        assert (end.kind, end.result) == (ExitKind.NOT_STARTED, None)
        assert "ended with 1" in end.message


async def test_an_idle_process_that_was_killed_is_replaced(
    runtime: ProcessRuntime, orders: Orders, root: Path
):
    first, _ = value_of(await run(runtime, orders.call(counting(), "a", pool="p")))
    assert procfs.children(forkserver(root)) == {first}
    os.kill(first, signal.SIGKILL)
    again = await run(runtime, orders.call(counting(), "b", pool="p"))
    assert value_of(again)[1] == 1


async def test_a_pools_directory_goes_with_its_process(runtime: ProcessRuntime, orders: Orders, root: Path):
    pid, _ = value_of(await run(runtime, orders.call(counting(), "a", pool="p")))
    assert len(list((root / "pools").iterdir())) == 1
    handle = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    await gone(handle)
    # Another attempt's end comes after the burial.
    await run(runtime, orders.command("true"))
    await run(runtime, orders.command("true"))
    assert list((root / "pools").iterdir()) == []
