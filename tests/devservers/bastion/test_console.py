"""Logins without a server: commands and shells in the user's console, and their recordings, on loopback."""

import json
import os
import re
import subprocess
from collections.abc import AsyncGenerator
from hashlib import sha256
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from neorion.devservers.bastion.exec_session import COMMAND_MAX
from neorion.devservers.model.audit import AuditEvent
from neorion.devservers.model.kube_types import USERS
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock
from neorion.keel.kube import MergePatch, ObjectKey
from tests.devservers.bastion.loopback import Loopback, loopback
from tests.node.devctl_terminal import LONG_WORK, Person

pytestmark = [pytest.mark.anyio, pytest.mark.needs("ssh")]


@pytest.fixture
async def bastion(tmp_path: Path) -> AsyncGenerator[Loopback]:
    async with loopback(tmp_path) as made:
        yield made


async def until_recorded(bastion: Loopback) -> list[Path]:
    """The recordings, once every session has ended."""
    ends = (AuditEvent.SESSION, AuditEvent.SESSION_END)
    with anyio.fail_after(20):
        while len({[one.event for one in bastion.records].count(end) for end in ends}) > 1:
            await SystemClock().sleep(Duration.of(ms=20))
    return sorted((bastion.folder / "recordings").glob("*.cast"))


async def test_a_command_keeps_its_outputs_and_its_exit_code(bastion: Loopback):
    done = await bastion.ssh("ann", 'echo "$CONTAINER"; echo err >&2; exit 7')
    assert (done.returncode, done.stdout) == (7, b"console\n")
    assert done.stderr == b"Starting your console.\r\nerr\n"
    large = os.urandom(3_000_000)
    assert (await bastion.ssh("ann", "cat", say=large)).stdout == large
    assert (await bastion.ssh("ann", say=b"echo typed; exit 4\n")).returncode == 4


async def test_files_are_copied_to_the_console_by_sftp(bastion: Loopback, tmp_path: Path):
    (tmp_path / "here").write_bytes(os.urandom(500_000))
    batch = f"put {tmp_path}/here {tmp_path}/there\n".encode()
    done = await bastion.run(bastion.command("", "-b", "-", "ann@127.0.0.1", program="sftp"), batch)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


async def test_a_command_that_no_request_can_carry_is_refused(bastion: Loopback):
    command = bastion.command("ann", "true " + "x" * COMMAND_MAX)
    done = await bastion.run(command)
    assert (done.returncode, done.stdout) == (255, b"")
    assert f"The command has more than {COMMAND_MAX} characters".encode() in done.stderr


async def test_a_server_without_ssh_is_entered_by_exec(bastion: Loopback):
    bastion.servers.without_ssh.add(ObjectKey("dev-ann", "mydev"))
    done = await bastion.ssh("ann+mydev", 'echo "$CONTAINER"; exit 3')
    assert (done.returncode, done.stdout) == (3, b"pod\n"), done.stderr


async def test_the_processes_of_a_session_end_with_its_connection(bastion: Loopback):
    mark = bastion.folder / "pid"
    command = bastion.command("ann", f"echo $$ > {mark}; sleep 600 & wait")
    async with await anyio.open_process(command, stderr=subprocess.DEVNULL) as client:
        with anyio.fail_after(20):
            while not mark.exists() or not mark.read_text().strip():
                await SystemClock().sleep(Duration.of(ms=20))
        process = Path("/proc") / mark.read_text().strip()
        assert process.exists()
        client.terminate()
    with anyio.fail_after(20):
        while process.exists():
            await SystemClock().sleep(Duration.of(ms=20))
    await until_recorded(bastion)


async def test_a_terminal_is_resized_interrupted_and_recorded_without_secrets(bastion: Loopback):
    command = bastion.command("ann", "-tt")
    env = {**os.environ, "HOME": str(bastion.folder), "TERM": "xterm"}
    token = "ghp_" + "a" * 36

    def use() -> int:
        person = Person.start(["/usr/bin/env", *command], env)
        person.type("echo rea''dy\r")
        person.see("ready")
        person.resize(40, 120)
        person.type("stty size\r")
        person.see("40 120")
        person.type(LONG_WORK)
        person.see("begun")
        person.type("\x03")
        person.type(f"echo {token}; echo af''ter\r")
        person.see("\nafter")
        person.type("exit 9\r")
        return person.exit_code()

    assert await anyio.to_thread.run_sync(use) == 9
    (file,) = await until_recorded(bastion)
    head, *events = [json.loads(line) for line in file.read_text().splitlines()]
    assert (head["version"], head["title"], head["env"]) == (2, "ann", {"TERM": "xterm"})
    assert [at for at, _, _ in events] == sorted(at for at, _, _ in events)
    assert [text for _, kind, text in events if kind == "r"] == ["120x40"]
    shown = "".join(text for _, kind, text in events if kind == "o")
    assert "after" in shown
    assert "a" * 36 not in shown
    assert "a" * 36 not in file.read_text()
    (end,) = [one for one in bastion.records if one.event is AuditEvent.SESSION_END]
    assert (end.recording, end.digest) == (file.stem, sha256(file.read_bytes()).hexdigest())


async def test_commands_without_a_terminal_are_not_recorded(bastion: Loopback):
    await bastion.ssh("ann", "true")
    assert await until_recorded(bastion) == []


async def test_a_suspended_user_is_cut_out_of_the_console(bastion: Loopback):
    async with await anyio.open_process(bastion.command("ann", "echo begun; cat"), stderr=None) as process:
        assert process.stdout is not None
        with anyio.fail_after(20):
            assert await process.stdout.receive() == b"begun\n"
            await bastion.api.patch(USERS, "ann", MergePatch({"spec": {"suspended": True}}))
            assert await process.wait() == 255
    await until_recorded(bastion)


async def test_environment_of_the_client_is_limited_to_its_language(bastion: Loopback):
    options = ["-o", "SetEnv=LC_ALL=C.UTF-8 LD_PRELOAD=/x.so PATH=/x", "-o", "LogLevel=ERROR"]
    command = [*bastion.command("ann")[:-1], *options, "ann@127.0.0.1", "env"]
    lines = (await bastion.run(command)).stdout.decode().splitlines()
    assert "LC_ALL=C.UTF-8" in lines
    assert not [one for one in lines if re.match("LD_PRELOAD=|PATH=/x", one)]
