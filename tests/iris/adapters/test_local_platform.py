"""What only slices of real processes can get wrong: tokens, trees, workers that fail or do not end."""

import os
import stat
import sys
from pathlib import Path

import pytest

from neorion.iris.adapters.platforms.local import LocalMachine, LocalPlatform, worker_command
from neorion.iris.adapters.platforms.local.pidfd import ticks_of
from neorion.iris.model import Resources, SliceId, SliceState
from neorion.keel.base import Duration, NotFound, Retry
from tests.iris.adapters.local_rig import (
    STANDIN,
    TOKEN,
    Ear,
    Open,
    order,
    readable,
    settings,
    shown,
    until,
    until_gone,
)
from tests.iris.manual_clock import ManualClock

pytestmark = pytest.mark.anyio


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
        assert seen.message == "slice-a-0 exited with 7. Its last log line: out of luck"
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

    def launch(machine: LocalMachine) -> list[str]:
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
    machine = LocalMachine(
        SliceId("slice-a"), "h100", "slice-a-0", shape, (("zone", "a=b"),), "here:1", tmp_path
    )
    assert worker_command(machine)[1:] == [
        "-P",
        "-m",
        "neorion.iris",
        "worker",
        "serve",
        "--token-stdin",
        "--controller=here:1",
        "--slice=slice-a",
        "--host=127.0.0.1",
        f"--folder={tmp_path}",
        f"--log-file={tmp_path / 'worker.log'}",
        "--cpu=1500m",
        "--memory=1073741824",
        "--disk=0",
        "--gpus=2",
        "--gpu-variant=H100",
        "--attribute=zone=a=b",
    ]
