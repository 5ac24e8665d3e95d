"""What only slices of real processes can get wrong: tokens, trees, numbers used again, controllers that die."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from neorion.iris.adapters.platforms.faults import Behaviour
from neorion.iris.adapters.platforms.local import LocalPlatform, LocalSettings, Machine, worker_command
from neorion.iris.adapters.platforms.local.process import ticks_of
from neorion.iris.adapters.platforms.local.record import Birth, Record, Records
from neorion.iris.model import Resources, SliceId, SliceState
from neorion.iris.ports import SliceOrder, SliceSeen
from neorion.keel.base import Conflict, Duration, NotFound, Retry
from neorion.keel.clock import EPOCH
from tests.iris.manual_clock import ManualClock

pytestmark = pytest.mark.anyio

STANDIN = Path(__file__).parent.parent / "standin.py"
ROOT = Path(__file__).parent.parent.parent.parent
TOKEN = "s3cret-of-the-slice"
# A wait that fails ends the test in time for its processes to be cleaned up.
PATIENCE_S = 10


async def readable(descriptor: int) -> None:
    with anyio.fail_after(PATIENCE_S):
        await anyio.wait_readable(descriptor)


class Ear:
    """Hears what stand-ins say, without asking again and again."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._heard = b""

    async def line(self, about: str) -> list[str]:
        """The words after `about` in the next line that begins with it."""
        while True:
            while b"\n" not in self._heard:
                await readable(self._descriptor)
                self._heard += os.read(self._descriptor, 65536)
            line, _, self._heard = self._heard.partition(b"\n")
            first, *rest = line.decode().split()
            if first == about:
                return rest

    def close(self) -> None:
        os.close(self._descriptor)


@pytest.fixture
def ear(tmp_path: Path) -> Generator[Ear]:
    made = Ear(tmp_path / "fifo")
    yield made
    made.close()


Open = Callable[..., LocalPlatform]


@pytest.fixture
async def reopen(tmp_path: Path, ear: Ear) -> AsyncGenerator[Open, None]:
    """Opens the platform, again and again; at the end nothing is left of it."""

    def opened(play: str = "serve", clock: ManualClock | None = None, **more: Behaviour) -> LocalPlatform:
        command = [sys.executable, "-ISE", str(STANDIN), play, str(ear.path)]
        return LocalPlatform(settings(tmp_path, more), lambda _: command, clock or ManualClock())

    yield opened
    # Without grace: some stand-ins ignore the order to end, and no clock moves any more.
    at_once = replace(settings(tmp_path), grace=Duration(0))
    async with LocalPlatform(at_once, lambda _: ["true"], ManualClock()) as platform:
        await platform.shutdown()


def settings(folder: Path, behaviours: Mapping[str, Behaviour] | None = None) -> LocalSettings:
    variables = {"PATH": os.environ["PATH"], "COLOUR": "green"}
    return LocalSettings(folder / "state", "here:1", variables, behaviours or {})


def order(name: str = "a", machines: int = 1) -> SliceOrder:
    return SliceOrder(
        id=SliceId.made_of(name),
        group="h100",
        machines=machines,
        shape=Resources(cpu_milli=8000, memory=2**34, gpus=8, gpu_variant="H100"),
        attributes=(("zone", "here"),),
        controller="here:1",
        token=TOKEN,
    )


def shown(pid: str, file: str) -> str:
    """What everybody may see of a process."""
    return Path(f"/proc/{pid}/{file}").read_text()


async def until(changes: AsyncIterator[SliceSeen], state: SliceState) -> SliceSeen:
    with anyio.fail_after(PATIENCE_S):
        async for seen in changes:
            if seen.state is state:
                return seen
    pytest.fail(f"the platform closed before a slice was {state}")


async def until_gone(platform: LocalPlatform, changes: AsyncIterator[SliceSeen]) -> None:
    while await platform.list_all_slices():
        await until(changes, SliceState.DELETING)


async def test_the_token_reaches_the_worker_and_nobody_who_looks(reopen: Open, ear: Ear, tmp_path: Path):
    async with reopen() as platform:
        await platform.create_slice(order())
        host, pid, token = await ear.line("joined")
        assert (host, token) == ("slice-a-0", TOKEN)
        for file in ("cmdline", "environ"):
            assert TOKEN not in shown(pid, file)
        records = tmp_path / "state" / "records"
        assert stat.S_IMODE(records.stat().st_mode) == 0o700
        for file in records.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_a_worker_has_the_variables_it_was_given_and_a_session_of_its_own(reopen: Open, ear: Ear):
    async with reopen() as platform:
        await platform.create_slice(order())
        _, pid, _ = await ear.line("joined")
        found = shown(pid, "environ").split("\0")
        assert {each.partition("=")[0] for each in found if each} == {"PATH", "COLOUR", "IRIS_MACHINE"}
        assert os.getsid(int(pid)) == int(pid)


async def test_a_worker_that_fails_is_quoted(reopen: Open):
    async with reopen("fails") as platform:
        changes = platform.changes()
        await platform.create_slice(order())
        seen = await until(changes, SliceState.FAILED)
        assert seen.message == "slice-a-0 exited with 7. Its last words: out of luck"
        assert seen.hosts == ()


async def test_a_program_that_is_not_there_fails_the_slice(tmp_path: Path):
    platform = LocalPlatform(settings(tmp_path), lambda _: ["/nowhere/worker"], ManualClock())
    async with platform:
        changes = platform.changes()
        await platform.create_slice(order())
        seen = await until(changes, SliceState.FAILED)
        assert seen.message == "Its workers could not start: No such file or directory."
        await platform.shutdown()


async def test_workers_that_cannot_be_recorded_never_get_to_work(tmp_path: Path, ear: Ear):
    records = tmp_path / "state" / "records"
    command = [sys.executable, "-ISE", str(STANDIN), "serve", str(ear.path)]

    def launch(machine: Machine) -> list[str]:
        # Where the last machine starts, the record has no place to go any more.
        if machine.host.endswith("-1"):
            records.rename(tmp_path / "elsewhere")
        return command

    async with LocalPlatform(settings(tmp_path), launch, ManualClock()) as platform:
        changes = platform.changes()
        await platform.create_slice(order(machines=2))
        seen = await until(changes, SliceState.FAILED)
        while seen.hosts:
            seen = await until(changes, SliceState.FAILED)
        with pytest.raises(Retry) as refused:
            await platform.create_slice(order("b"))
        assert refused.value.code == "iris.slice_record"
        (tmp_path / "elsewhere").rename(records)
        await platform.shutdown()


async def test_a_worker_that_ignores_the_order_to_end_is_killed_after_the_grace(reopen: Open, ear: Ear):
    clock = ManualClock()
    async with reopen("stubborn", clock) as platform:
        changes = platform.changes()
        await platform.create_slice(order())
        _, pid, _ = await ear.line("joined")
        await platform.terminate(order().id)
        await ear.line("term")
        clock.advance(Duration.of(seconds=9))
        await platform.terminate(order().id)
        assert (await platform.describe(order().id)).hosts == ("slice-a-0",)
        clock.advance(Duration.of(seconds=1))
        await until_gone(platform, changes)
        assert ticks_of(int(pid)) is None


@pytest.mark.parametrize("verb", ["terminate", "lose"])
async def test_everything_that_a_worker_started_ends_with_it(reopen: Open, ear: Ear, verb: str):
    async with reopen("family") as platform:
        changes = platform.changes()
        await platform.create_slice(order())
        children = [os.pidfd_open(int((await ear.line("child"))[0])) for _ in range(3)]
        await ear.line("joined")
        if verb == "lose":
            await platform.lose(order().id)
            await until(changes, SliceState.FAILED)
        else:
            await platform.terminate(order().id)
            await until_gone(platform, changes)
        for child in children:
            await readable(child)
            os.close(child)


async def test_only_one_machine_is_lost_and_the_others_work_on(reopen: Open, ear: Ear):
    async with reopen() as platform:
        changes = platform.changes()
        await platform.create_slice(order(machines=2))
        pids = {host: int(pid) for host, pid, _ in [await ear.line("joined") for _ in range(2)]}
        await platform.lose(order().id)
        seen = await until(changes, SliceState.FAILED)
        assert seen.message == "slice-a-0 was ended by SIGKILL."
        assert ticks_of(pids["slice-a-1"]) is not None


DYING = """
import os, signal, sys
from pathlib import Path
import anyio
from neorion.iris.adapters.platforms.local import LocalPlatform
from tests.iris.adapters import test_local_platform as local
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
def bystander() -> Generator[Birth]:
    """A process that has nothing to do with us, in a session of its own."""
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as process:
        ticks = ticks_of(process.pid)
        assert ticks is not None
        yield Birth(process.pid, ticks, Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        process.kill()


@pytest.mark.parametrize("change", [{"ticks": 1}, {"boot": "another"}])
async def test_a_process_with_the_number_of_a_dead_worker_is_left_alone(
    reopen: Open, tmp_path: Path, bystander: Birth, change: dict[str, object]
):
    fields = {"pid": bystander.pid, "ticks": bystander.ticks, "boot": bystander.boot, **change}
    worker = Birth(**fields)  # pyright: ignore[reportArgumentType] -- one field of another value
    records = Records(tmp_path / "state" / "records")
    os.close(records.own())
    records.save(Record(order(), EPOCH, births=(worker,)))
    async with reopen() as platform:
        changes = platform.changes()
        seen = await until(changes, SliceState.FAILED)
        assert (seen.hosts, seen.message) == ((), "slice-a-0 ended while nobody watched.")
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


async def test_nothing_is_left_on_the_disk_of_a_slice_that_is_gone(reopen: Open, ear: Ear, tmp_path: Path):
    async with reopen() as platform:
        await platform.create_slice(order())
        await ear.line("joined")
        await platform.shutdown()
        found = [str(path.relative_to(tmp_path / "state")) for path in (tmp_path / "state").rglob("*")]
        assert sorted(found) == ["records", "records/.lock"]
        with pytest.raises(NotFound):
            await platform.lose(order().id)


async def test_those_who_listen_are_let_go_when_the_platform_closes(reopen: Open):
    async with reopen() as platform:
        changes = platform.changes()
    assert [seen async for seen in changes] == []


def test_the_command_of_a_worker_names_all_it_must_know(tmp_path: Path):
    shape = Resources(cpu_milli=1500, memory=2**30, gpus=2, gpu_variant="H100")
    machine = Machine(SliceId("slice-a"), "h100", "slice-a-0", shape, (("zone", "a=b"),), "here:1", tmp_path)
    assert worker_command(machine)[1:] == [
        "-m",
        "neorion.iris",
        "worker",
        "serve",
        "--token-stdin",
        "--controller=here:1",
        "--slice=slice-a",
        "--host=slice-a-0",
        f"--folder={tmp_path}",
        "--cpu=1500m",
        "--memory=1073741824",
        "--disk=0",
        "--gpus=2",
        "--gpu-variant=H100",
        "--attribute=zone=a=b",
    ]
