"""The bastion as users meet it, with the stock OpenSSH client on loopback."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import anyio.to_thread
import asyncssh
import pytest

from neorion.devservers.bastion import Limits
from neorion.devservers.decide.audit import verify
from neorion.devservers.model.audit import AuditEvent
from neorion.devservers.model.kube_types import USERS
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock
from neorion.keel.kube import MergePatch
from tests.devservers.bastion.loopback import Loopback, loopback, make_key
from tests.node.devctl_terminal import Person

pytestmark = [pytest.mark.anyio, pytest.mark.needs("ssh")]


@pytest.fixture
async def bastion(tmp_path: Path) -> AsyncGenerator[Loopback]:
    async with loopback(tmp_path) as made:
        yield made


async def until_logged_out(bastion: Loopback) -> None:
    with anyio.fail_after(20):
        while len(bastion.context.sessions):
            await SystemClock().sleep(Duration.of(ms=20))


async def test_a_command_runs_in_the_users_own_server(bastion: Loopback):
    done = await bastion.ssh("ann+mydev", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")
    large = os.urandom(3_000_000)
    assert (await bastion.ssh("ann+mydev", "cat", say=large)).stdout == large
    # A signal has no exit code for ssh.
    assert (await bastion.ssh("ann+mydev", "die")).returncode == 255


async def test_a_server_that_sleeps_is_woken_and_says_so(bastion: Loopback):
    done = await bastion.ssh("ann+sleepy", "echo awake")
    assert (done.stdout, done.stderr) == (b"awake\n", b"sleepy is stopped. Starting it.\r\n")


async def test_files_are_copied_by_sftp(bastion: Loopback, tmp_path: Path):
    (tmp_path / "here").write_bytes(os.urandom(500_000))
    batch = f"put {tmp_path}/here {tmp_path}/there\nget {tmp_path}/there {tmp_path}/back\n".encode()
    done = await bastion.run(bastion.command("", "-b", "-", "ann+mydev@127.0.0.1", program="sftp"), batch)
    assert b"Couldn't" not in done.stderr
    assert (tmp_path / "back").read_bytes() == (tmp_path / "here").read_bytes()


async def test_a_terminal_has_its_size_its_changes_and_its_exit_code(bastion: Loopback):
    command = bastion.command("ann+mydev", "-tt")
    env = {**os.environ, "HOME": str(bastion.folder), "TERM": "xterm"}

    def use() -> int:
        person = Person.start(["/usr/bin/env", *command], env)
        person.see("terminal ")
        person.resize(40, 120)
        person.see("resized 120x40")
        person.type("exit\r\n")
        return person.exit_code()

    assert await anyio.to_thread.run_sync(use) == 9


def jump(bastion: Loopback, target: str, *words: str) -> list[str]:
    """`ssh -J ann@bastion dev@target`, whose host keys nobody has to know beforehand here."""
    proxy = " ".join([*bastion.command("ann")[:-1], "-W", "%h:%p", "ann@127.0.0.1"])
    options = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]
    return [
        "ssh",
        "-F",
        "none",
        "-i",
        str(bastion.key("ann")),
        *options,
        "-o",
        f"ProxyCommand={proxy}",
        target,
        *words,
    ]


async def test_a_jump_leads_to_the_sshd_of_ones_own_server_and_to_no_other(bastion: Loopback):
    done = await bastion.run(jump(bastion, "dev@mydev", "echo inside; exit 3"))
    assert (done.returncode, done.stdout) == (3, b"inside\n"), done.stderr
    named = await bastion.run(jump(bastion, "dev@mydev.dev-ann", "true"))
    assert named.returncode == 0, named.stderr
    for host in ("mydev.dev-bob", "127.0.0.1", "169.254.169.254", "kubernetes.default.svc"):
        done = await bastion.run(jump(bastion, f"dev@{host}", "true"))
        assert done.returncode == 255
    refused = [one.server for one in bastion.records if one.event is AuditEvent.REFUSED]
    assert refused == ["mydev.dev-bob", "127.0.0.1", "169.254.169.254", "kubernetes.default.svc"]


@pytest.mark.parametrize(("login", "target"), [("ann", "mydev:8888"), ("ann+mydev", "localhost:8888")])
async def test_ports_of_ones_own_server_are_forwarded(bastion: Loopback, login: str, target: str):
    command = [*bastion.command(login)[:-1], "-W", target, f"{login}@127.0.0.1"]
    done = await bastion.run(command, b"hello")
    assert done.stdout == b"this is dev-ann/mydev", done.stderr
    (end,) = [one for one in bastion.records if one.event is AuditEvent.FORWARD_END]
    assert (end.server, end.port, end.bytes_sent, end.bytes_received) == ("mydev", 8888, 5, 21)


async def test_what_is_not_open_on_a_server_is_refused_with_the_reason(bastion: Loopback):
    command = [*bastion.command("ann")[:-1], "-W", "mydev:9", "ann@127.0.0.1"]
    done = await bastion.run([one.replace("LogLevel=ERROR", "LogLevel=INFO") for one in command])
    assert done.returncode == 255
    assert b"Nothing listens on port 9 of mydev." in done.stderr


async def test_many_sessions_share_one_connection(bastion: Loopback):
    async with asyncssh.connect(
        "127.0.0.1",
        bastion.port,
        username="ann+mydev",
        client_keys=[str(bastion.key("ann"))],
        known_hosts=None,
        config=None,
    ) as connection:
        seen: list[str] = []

        async def one(number: int) -> None:
            done = await connection.run(f"echo {number}")
            seen.append(str(done.stdout).strip())

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(one, number)
    assert sorted(seen, key=int) == [str(number) for number in range(20)]


@pytest.mark.parametrize(
    ("login", "key"),
    [
        ("ann", "bob"),
        ("bob+mydev", "ann"),
        ("nobody", "ann"),
        ("root", "ann"),
        ("ann+", "ann"),
        ("ann+../x", "ann"),
        ("ANN", "ann"),
        ("ann+a+b", "ann"),
        ("a" * 300, "ann"),
        ("dev-ann", "ann"),
    ],
)
async def test_who_is_not_the_user_is_refused_whoever_they_say_they_are(
    bastion: Loopback, login: str, key: str
):
    command = [*bastion.command("x", key=key)[:-1], "-o", f"User={login}", "127.0.0.1", "true"]
    done = await bastion.run(command)
    assert done.returncode == 255
    assert b"Permission denied (publickey)" in done.stderr
    (record,) = bastion.records
    assert (record.event, record.key) == (AuditEvent.REFUSED, "")


@pytest.mark.parametrize("name", ["ａｎｎ", "ann\u200b", "ánn", "-oProxyCommand=id", "ann;id"])
async def test_a_name_in_other_letters_is_nobodys_or_is_written_down_as_it_was_understood(
    bastion: Loopback, name: str
):
    try:
        async with asyncssh.connect(
            "127.0.0.1",
            bastion.port,
            username=name,
            client_keys=[str(bastion.key("ann"))],
            known_hosts=None,
            config=None,
        ):
            pass
    except (asyncssh.Error, OSError):
        pass
    await until_logged_out(bastion)
    assert {one.user for one in bastion.records} <= {"", "ann"}


async def test_nothing_but_a_key_logs_in(bastion: Loopback):
    methods = await asyncssh.get_server_auth_methods("127.0.0.1", bastion.port, username="ann", config=None)
    assert list(methods) == ["publickey"]


async def test_agents_x11_and_remote_forwards_are_refused(bastion: Loopback):
    done = await bastion.ssh("ann+mydev", "-A", "-X", 'echo "[$SSH_AUTH_SOCK][$DISPLAY]"')
    agent = os.environ.get("SSH_AUTH_SOCK", "")
    assert done.stdout == f"[{agent}][{os.environ.get('DISPLAY', '')}]\n".encode()
    command = [*bastion.command("ann+mydev")[:-1], "-o", "ExitOnForwardFailure=yes", "-R", "0:localhost:22"]
    assert (await bastion.run([*command, "ann+mydev@127.0.0.1", "true"])).returncode == 255


@pytest.mark.parametrize("spec", [{"suspended": True}, {"keys": []}])
async def test_sessions_end_when_the_user_is_suspended_or_the_key_is_taken_away(
    bastion: Loopback, spec: dict[str, object]
):
    command = bastion.command("ann+mydev", "echo begun; cat")
    process = await anyio.open_process(command, stderr=None)
    async with process:
        assert process.stdout is not None
        with anyio.fail_after(20):
            assert await process.stdout.receive() == b"begun\n"
            await bastion.api.patch(USERS, "ann", MergePatch({"spec": spec}))
            assert await process.wait() == 255
    await until_logged_out(bastion)
    (logout,) = [one for one in bastion.records if one.event is AuditEvent.LOGOUT]
    assert logout.reason in {"the user is suspended or removed", "the key was taken away"}
    assert (await bastion.ssh("ann+mydev", "true")).returncode == 255


async def test_a_key_that_is_added_lets_in_at_once(bastion: Loopback, tmp_path: Path):
    line = await make_key(tmp_path, "second")
    assert (await bastion.ssh("ann+mydev", "true", key="second")).returncode == 255
    await bastion.api.patch(USERS, "ann", MergePatch({"spec": {"keys": [line]}}))
    assert (await bastion.ssh("ann+mydev", "true", key="second")).returncode == 0


async def test_a_key_of_the_key_server_logs_in_until_it_is_taken_away_there(
    bastion: Loopback, tmp_path: Path
):
    line = await make_key(tmp_path, "second")
    await bastion.api.patch(USERS, "ann", MergePatch({"spec": {"github": "ann-h"}}))

    async def fetched(*keys: str) -> None:
        status = {"fetchedKeys": list(keys), "fetchedFrom": "ann-h"}
        await bastion.api.patch(USERS, "ann", MergePatch({"status": status}), subresource="status")

    await fetched(line)
    async with await anyio.open_process(
        bastion.command("ann+mydev", "echo begun; cat", key="second")
    ) as process:
        assert process.stdout is not None
        with anyio.fail_after(20):
            assert await process.stdout.receive() == b"begun\n"
            await fetched()
            assert await process.wait() == 255
    assert (await bastion.ssh("ann+mydev", "true", key="second")).returncode == 255
    assert (await bastion.ssh("ann+mydev", "true")).returncode == 0


async def test_a_user_has_so_many_connections_and_no_more(tmp_path: Path):
    async with loopback(tmp_path, spec={"limits": {"connections": 1}}) as bastion:
        async with await anyio.open_process(bastion.command("ann+mydev", "echo begun; cat")) as first:
            assert first.stdout is not None
            with anyio.fail_after(20):
                assert await first.stdout.receive() == b"begun\n"
            second = await bastion.ssh("ann+mydev", "true")
            assert second.returncode == 255
            first.terminate()
        await until_logged_out(bastion)
        assert (await bastion.ssh("ann+mydev", "true")).returncode == 0


async def test_a_source_that_fails_again_and_again_has_to_wait(tmp_path: Path):
    async with loopback(tmp_path, Limits(failures=3)) as bastion:
        for _ in range(3):
            assert (await bastion.ssh("ann", "true", key="bob")).returncode == 255
        barred = await bastion.ssh("ann+mydev", "true")
        assert barred.returncode == 255
        assert b"Permission denied" not in barred.stderr


async def test_open_sessions_are_kept_until_the_deadline_when_the_bastion_stops(tmp_path: Path):
    env = {**os.environ, "HOME": str(tmp_path), "TERM": "xterm"}

    async def begin(bastion: Loopback) -> Person:
        person = Person.start(["/usr/bin/env", *bastion.command("ann", "-tt")], env)
        person.type("echo rea''dy\r")
        await anyio.to_thread.run_sync(person.see, "ready")
        return person

    # One user ends in time, and the bastion ends at once; the other is cut.
    for drain_s, keys, code in ((60.0, "exit 5\r", 5), (0.5, "", 255)):
        folder = tmp_path / str(code)
        folder.mkdir()
        async with loopback(folder, Limits(drain_s=drain_s)) as bastion:
            person = await begin(bastion)
            async with anyio.create_task_group() as group:

                async def end(person: Person = person, bastion: Loopback = bastion, keys: str = keys) -> None:
                    await anyio.to_thread.run_sync(person.see, "This bastion restarts.")
                    refused = await bastion.ssh("ann", "true")
                    assert refused.returncode == 255
                    person.type(keys)

                group.start_soon(end)
                await bastion.stop()
        assert await anyio.to_thread.run_sync(person.exit_code) == code
        last = {one.event for one in bastion.records[-2:]}
        assert last == {AuditEvent.SESSION_END, AuditEvent.LOGOUT}


async def test_every_step_stands_in_the_audit_log_and_no_secret(bastion: Loopback):
    await bastion.ssh("ann+mydev", "echo secret-output")
    await until_logged_out(bastion)
    assert [one.event for one in bastion.records] == [
        AuditEvent.LOGIN,
        AuditEvent.SESSION,
        AuditEvent.SESSION_END,
        AuditEvent.LOGOUT,
    ]
    session, end = bastion.records[1], bastion.records[2]
    assert (session.user, session.server, session.command) == ("ann", "mydev", "echo secret-output")
    assert session.key.startswith("SHA256:")
    assert end.exit_code == 0
    text = (bastion.folder / "audit.jsonl").read_bytes()
    # What was typed as a command stands there; keys and output do not.
    assert b"ssh-ed25519 " not in text
    assert text.count(b"secret-output") == 2
    head, flaws = verify(text.splitlines())
    assert (head.number, flaws) == (4, [])
