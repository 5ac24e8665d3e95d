"""Logs of bounded size, whoever writes them and however fast."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from neorion.iris.adapters.runtimes.process import syscalls
from neorion.iris.adapters.runtimes.process.log_files import LOG_BYTES_MAX, kept_from, trim
from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.ports import ExitKind
from neorion.iris.testing.runtime_waits import ended, logged
from neorion.keel.base import Duration
from tests.iris.runtimes.conftest import Orders
from tests.iris.runtimes.test_calls import run

pytestmark = pytest.mark.anyio
KIB = 1 << 10


def test_a_log_below_its_cap_is_left_alone(tmp_path: Path):
    log = tmp_path / "log"
    log.write_bytes(b"x" * 64 * KIB)
    trim(str(log), 64 * KIB)
    assert log.read_bytes() == b"x" * 64 * KIB
    assert kept_from(log) == 0


def test_a_log_over_its_cap_loses_its_older_part_and_says_how_much(tmp_path: Path):
    log = tmp_path / "log"
    written = b"".join(b"line %06d\n" % number for number in range(20_000))
    log.write_bytes(written)
    trim(str(log), 64 * KIB)
    data = log.read_bytes()
    dropped = len(written) - 32 * KIB
    assert len(data) == len(written)
    assert data[dropped:] == written[dropped:]
    mark = f"\n[{dropped} bytes dropped: the log passed {64 * KIB} bytes]\n".encode()
    assert data[dropped - len(mark) : dropped] == mark
    assert kept_from(log) == dropped
    assert log.stat().st_blocks * 512 <= 64 * KIB


def test_a_writer_goes_on_where_it_was(tmp_path: Path):
    log = tmp_path / "log"
    with log.open("ab", buffering=0) as out:
        out.write(b"a" * 200 * KIB)
        trim(str(log), 64 * KIB)
        out.write(b"after\n")
        out.write(b"b" * 200 * KIB)
        trim(str(log), 64 * KIB)
        out.write(b"end\n")
    assert log.read_bytes().endswith(b"b" * 1000 + b"end\n")
    assert log.stat().st_blocks * 512 <= 68 * KIB
    assert kept_from(log) > 300 * KIB


async def test_a_task_that_writes_without_end_fills_no_disk(runtime: ProcessRuntime, orders: Orders):
    """No newline, binary, as fast as it goes: 512 MiB, then it stays, so that the cap is kept while it lives."""
    order = orders.shell("head -c 536870912 /dev/zero | tr '\\0' '\\200'; printf '\\nready\\n'; sleep 1000")
    await runtime.start(order)
    log = runtime.log(order.attempt)
    beside = await run(runtime, orders.command("echo", "a neighbour"))
    assert beside.well
    with anyio.fail_after(60):
        # While it lives: the cap does not wait for the end.
        await until(log, lambda: last_of(log, 6) == b"ready\n" and taken(log) <= LOG_BYTES_MAX)
        await runtime.stop(order.attempt, Duration(0))
        assert (await ended(runtime, order.attempt)).kind is ExitKind.STOPPED
    assert taken(log) <= LOG_BYTES_MAX + (1 << 20)
    assert kept_from(log) > LOG_BYTES_MAX


async def until(log: Path, holds: Callable[[], bool]) -> None:
    with syscalls.Modifications() as modifications:
        modifications.watch(str(log))
        while not holds():
            await anyio.wait_readable(modifications.fd)
            modifications.read()
            modifications.watch(str(log))


def last_of(path: Path, count: int) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - count))
        return file.read()


def taken(path: Path) -> int:
    return path.stat().st_blocks * 512


async def test_output_of_a_quiet_task_is_there_at_once(runtime: ProcessRuntime, orders: Orders):
    def speaks() -> None:
        print("ready")  # noqa: T201 -- for the log
        while True:
            signal.pause()

    order = orders.call(speaks)
    await runtime.start(order)
    with anyio.fail_after(60):
        await logged(runtime, order.attempt, "ready")
