"""A task cannot reach the memory in which its fork server and the guardian keep the lease."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from neorion.iris.adapters.runtimes.process.result_file import load
from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.ports import Phase
from neorion.iris.testing.runtime_waits import ended, logged
from tests.iris.runtimes.conftest import Orders, root, runtime

__all__ = ["orders", "root", "runtime"]

pytestmark = [pytest.mark.anyio, pytest.mark.attack("forged-lease")]


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders(tmp_path)


def forging() -> Callable[[], int]:
    """A function that travels to a task by value."""

    def forge() -> int:
        """Writes a time far ahead into every page that this process shares with others; how many there were."""
        import ctypes  # noqa: PLC0415 -- it runs in a task

        pages = 0
        for line in Path("/proc/self/maps").read_text().splitlines():
            place, rights, *_ = line.split()
            if rights == "rw-s":
                pages += 1
                ctypes.c_longlong.from_address(int(place.partition("-")[0], 16)).value = 2**62
        return pages

    return forge


async def test_a_task_that_forges_the_lease_ends_no_other(runtime: ProcessRuntime, orders: Orders) -> None:
    other = orders.shell("echo ready; sleep 600")
    await runtime.start(other)
    await logged(runtime, other.attempt, "ready")
    forger = orders.call(forging())
    await runtime.start(forger)
    with anyio.fail_after(60):
        found = (await ended(runtime, forger.attempt)).result
        assert found is not None
        assert load(Path(found)) == 0
        later = orders.shell("true")
        await runtime.start(later)
        assert (await ended(runtime, later.attempt)).code == 0
    seen = {one.attempt: one.phase for one in await runtime.seen()}
    assert seen[other.attempt] is Phase.RUNNING


FORK = """
import os, sys
from neorion.iris.adapters.runtimes.process.forkserver.supervisor import SharedLease
from tests.attacks.test_lease_page import forging
lease = SharedLease()
if sys.argv[1] == "hidden":
    lease.hide_from_children()
child = os.fork()
if child == 0:
    os._exit(forging()())
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), lease.left_ns > 2**61)
"""


@pytest.mark.parametrize(("how", "found"), [("hidden", "0 False"), ("shared", "1 True")])
def test_a_child_finds_the_page_only_where_it_is_shared(how: str, found: str) -> None:
    folder = Path(__file__).parents[2]
    command = [sys.executable, "-c", FORK, how]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == found
