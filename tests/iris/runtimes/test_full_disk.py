"""A worker's disk that is full when a task ends: the end says so."""

import os
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.ports import ExitKind
from neorion.iris.testing.runtime_waits import ended
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock
from tests.iris.runtimes.conftest import LEASE, Orders, forkserver, gone

pytestmark = [pytest.mark.anyio, pytest.mark.needs("root")]


@pytest.fixture
def small_disk(tmp_path: Path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.fixture
async def runtime(small_disk: Path) -> AsyncIterator[ProcessRuntime]:
    root = small_disk / "runtime"
    async with ProcessRuntime(root, SystemClock()) as made:
        await made.renew(LEASE)
        yield made
        server = os.pidfd_open(forkserver(root))
        await made.renew(Duration(1))
    await gone(server)


def filling(ballast: str, end: str) -> Callable[[], str]:
    """A function that travels to a task by value."""

    def fill() -> str:
        with Path(ballast).open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                pass
        if end == "raise":
            raise ValueError("its own error")
        return "x" * 100_000

    return fill


@pytest.mark.parametrize("end", ["return", "raise"])
async def test_a_value_without_room_has_a_reason(
    runtime: ProcessRuntime, orders: Orders, small_disk: Path, end: str
) -> None:
    # The end of this one makes the file that the end of the next one is written to.
    first = orders.shell("true")
    await runtime.start(first)
    assert (await ended(runtime, first.attempt)).code == 0
    ballast = small_disk / "ballast"
    order = orders.call(filling(str(ballast), end))
    await runtime.start(order)
    found = await ended(runtime, order.attempt)
    ballast.unlink()
    assert (found.kind, found.message) == (
        ExitKind.NO_ROOM,
        "There was no room for its value on the disk of its worker.",
    )
    again = orders.call(lambda: 42)
    await runtime.start(again)
    assert (await ended(runtime, again.attempt)).kind is ExitKind.EXIT
