"""Slices of real processes when controllers die, records are damaged and numbers are used again."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from neorion.iris.adapters.platforms.local.pidfd import ticks_of
from neorion.iris.adapters.platforms.local.slice_store import LocalSliceRecord, ProcessIdentity, SliceStore
from neorion.iris.model import SliceState
from neorion.keel.base import Conflict, Duration
from neorion.keel.clock import EPOCH
from tests.iris.adapters.local_rig import STANDIN, Ear, Open, order, until, until_gone
from tests.iris.manual_clock import ManualClock

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parent.parent.parent.parent

DYING = """
import os, signal, sys
from pathlib import Path
import anyio
from neorion.iris.adapters.platforms.local import LocalPlatform
from tests.iris.adapters import local_rig as local
from tests.iris.manual_clock import ManualClock

folder, fifo, last, *command = sys.argv[1:]

def launch(machine):
    if machine.host == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return command

async def main():
    async with LocalPlatform(local.settings(Path(folder)), launch, ManualClock()) as platform:
        await platform.create_slice(local.order(machines=2))
        await anyio.sleep_forever()

anyio.run(main)
"""


def controller(folder: Path, ear: Ear, last: str) -> "subprocess.Popen[bytes]":
    """Another process that makes the slice, and dies where it would start the machine `last`."""
    worker = [sys.executable, "-ISE", str(STANDIN), "serve", str(ear.path)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", DYING, str(folder), str(ear.path), last, *worker], env=variables
    )


async def test_slices_outlive_a_controller_that_is_killed(reopen: Open, ear: Ear, tmp_path: Path):
    with controller(tmp_path, ear, last="") as first:
        pids = {host: int(pid) for host, pid, _ in [await ear.line("joined") for _ in range(2)]}
        first.kill()
    async with reopen() as platform:
        changes = platform.changes()
        (seen,) = await platform.list_all_slices()
        assert (seen.state, seen.hosts) == (SliceState.BOOTSTRAPPING, ("slice-a-0", "slice-a-1"))
        # Its death is noticed at once, though it is nobody's child here.
        os.kill(pids["slice-a-1"], signal.SIGKILL)
        seen = await until(changes, SliceState.FAILED)
        assert (seen.hosts, seen.message) == (("slice-a-0",), "slice-a-1 ended.")
        await platform.terminate(order().id)
        await until_gone(platform, changes)


async def test_a_controller_that_dies_between_start_and_record_leaves_no_worker_behind(
    reopen: Open, ear: Ear, tmp_path: Path
):
    with controller(tmp_path, ear, last="slice-a-1"):
        # Started, but never recorded: it gets no token and ends by itself.
        assert await ear.line("untold") == ["slice-a-0"]
    async with reopen() as platform:
        await platform.create_slice(order(machines=2))
        hosts = {(await ear.line("joined"))[0] for _ in range(2)}
        assert hosts == {"slice-a-0", "slice-a-1"}


async def test_what_was_ending_goes_on_ending_after_a_restart(reopen: Open, ear: Ear):
    clock = ManualClock()
    async with reopen("stubborn", clock) as platform:
        await platform.create_slice(order())
        await ear.line("joined")
        await platform.terminate(order().id)
        await ear.line("term")
    async with reopen("stubborn", clock) as platform:
        changes = platform.changes()
        assert (await platform.describe(order().id)).state is SliceState.DELETING
        await ear.line("term")
        clock.advance(Duration.of(seconds=10))
        await until_gone(platform, changes)


async def test_a_failure_is_still_told_after_a_restart(reopen: Open):
    async with reopen("fails") as platform:
        changes = platform.changes()
        await platform.create_slice(order())
        before = await until(changes, SliceState.FAILED)
    async with reopen() as platform:
        assert await platform.list_all_slices() == [before]


@pytest.fixture
def bystander() -> Generator[ProcessIdentity]:
    """A process that has nothing to do with us, in a session of its own."""
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as process:
        ticks = ticks_of(process.pid)
        assert ticks is not None
        yield ProcessIdentity(process.pid, ticks, Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        process.kill()


@pytest.mark.parametrize("change", [{"ticks": 1}, {"boot": "another"}])
async def test_a_process_with_the_number_of_a_dead_worker_is_left_alone(
    reopen: Open, tmp_path: Path, bystander: ProcessIdentity, change: dict[str, object]
):
    fields = {"pid": bystander.pid, "ticks": bystander.ticks, "boot": bystander.boot, **change}
    worker = ProcessIdentity(**fields)  # pyright: ignore[reportArgumentType] -- one field of another value
    records = SliceStore(tmp_path / "state" / "records")
    os.close(records.own())
    records.save(LocalSliceRecord(order(), EPOCH, births=(worker,)))
    async with reopen() as platform:
        changes = platform.changes()
        seen = await until(changes, SliceState.FAILED)
        assert (seen.hosts, seen.message) == ((), "slice-a-0 ended while the controller was down.")
        await platform.terminate(order().id)
        await until_gone(platform, changes)
    assert ticks_of(bystander.pid) == bystander.ticks


async def test_a_damaged_record_is_forgotten_and_the_others_are_found(reopen: Open, tmp_path: Path):
    async with reopen() as platform:
        await platform.create_slice(order("a"))
        await platform.create_slice(order("b"))
    (tmp_path / "state" / "records" / "slice-0.json").write_text('{"order": {')
    (tmp_path / "state" / "records" / "slice-1.part").write_text("{")
    async with reopen() as platform:
        assert [seen.id for seen in await platform.list_all_slices()] == ["slice-a", "slice-b"]
    assert sorted(path.name for path in (tmp_path / "state" / "records").iterdir()) == [
        ".lock",
        "slice-a.json",
        "slice-b.json",
    ]


async def test_one_controller_at_a_time(reopen: Open):
    async with reopen():
        with pytest.raises(Conflict) as refused:
            async with reopen():
                pass
        assert refused.value.code == "iris.platform_owned"
