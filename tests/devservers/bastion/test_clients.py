"""What the programs of users do over SSH: copies, shared connections, editors; and what the bastion says when it refuses."""

import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import asyncssh
import pytest
from anyio.abc import SocketStream

from neorion.devservers.model.audit import AuditEvent
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock
from tests.devservers.bastion.loopback import Loopback, loopback

pytestmark = [pytest.mark.anyio, pytest.mark.needs("ssh")]


@pytest.fixture
async def bastion(tmp_path: Path) -> AsyncGenerator[Loopback]:
    async with loopback(tmp_path) as made:
        yield made


def options(bastion: Loopback) -> list[str]:
    """Of any ssh to the bastion, without the name of a user."""
    return bastion.command("ann")[1:-1]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


async def connected(port: int) -> SocketStream:
    """A connection to a port that ssh opens some time after its start."""
    with anyio.fail_after(30):
        while True:
            try:
                return await anyio.connect_tcp("127.0.0.1", port)
            except OSError:
                await SystemClock().sleep(Duration.of(ms=50))


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("login", ["ann+mydev", "ann"])
async def test_a_folder_is_synchronized_by_rsync_both_ways(bastion: Loopback, tmp_path: Path, login: str):
    here, there, back = (tmp_path / name for name in ("here", "there", "back"))
    (here / "deep").mkdir(parents=True)
    (here / "deep" / "large").write_bytes(os.urandom(500_000))
    (here / "link").symlink_to("deep/large")
    shell = " ".join(["ssh", *options(bastion)])
    place = f"{login}@127.0.0.1:{there}/"
    for source, target in ((f"{here}/", place), (place, f"{back}/")):
        done = await bastion.run(["rsync", "-az", "--delete", "-e", shell, source, target])
        assert done.returncode == 0, done.stderr
    assert (back / "deep" / "large").read_bytes() == (here / "deep" / "large").read_bytes()
    assert (back / "link").readlink() == Path("deep/large")
    (here / "deep" / "large").unlink()
    await bastion.run(["rsync", "-az", "--delete", "-e", shell, f"{here}/", place])
    assert not (there / "deep" / "large").exists()


@asynccontextmanager
async def control_master(bastion: Loopback, path: Path) -> AsyncGenerator[list[str]]:
    """Options of a client that shares the connection of a master, as `ControlMaster auto` makes it."""
    shared = ["-o", f"ControlPath={path}"]
    ssh = ["ssh", *options(bastion)]
    master = [*ssh, "-o", "ControlMaster=yes", *shared, "-N", "-f", "ann+mydev@127.0.0.1"]
    assert (await bastion.run(master)).returncode == 0
    try:
        yield [*ssh, *shared]
    finally:
        await bastion.run([*ssh, *shared, "-O", "exit", "ann+mydev@127.0.0.1"])


async def test_clients_share_one_login_by_control_master(bastion: Loopback, tmp_path: Path):
    async with control_master(bastion, tmp_path / "master") as ssh:
        codes: dict[int, int] = {}

        async def one(number: int) -> None:
            done = await bastion.run([*ssh, "ann+mydev@127.0.0.1", f"exit {number}"])
            codes[number] = done.returncode

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(one, number)
        port = free_port()
        opened = await bastion.run(
            [*ssh, "-O", "forward", "-L", f"{port}:localhost:8888", "ann+mydev@127.0.0.1"]
        )
        assert opened.returncode == 0, opened.stderr
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(b"hello")
            assert await stream.receive() == b"this is dev-ann/mydev"
    assert codes == {number: number for number in range(8)}
    assert [one.event for one in bastion.records].count(AuditEvent.LOGIN) == 1


async def test_the_options_of_vs_code_remote_ssh_reach_its_server_through_socks(bastion: Loopback):
    """Remote-SSH feeds its installer to a shell, and reaches the port that it prints through `-D`."""
    port = free_port()
    words = ["-v", "-T", "-D", str(port), "-o", "ConnectTimeout=15", "-o", "RemoteCommand=none"]
    command = ["ssh", *options(bastion), *words, "ann+mydev@127.0.0.1", "bash"]
    async with await anyio.open_process(command, env={**os.environ, "HOME": str(bastion.folder)}) as editor:
        assert editor.stdin is not None
        assert editor.stdout is not None
        await editor.stdin.send(b"uname -s; echo listeningOn==8888==; cat\n")
        said = b""
        with anyio.fail_after(30):
            while b"listeningOn" not in said:
                said += await editor.stdout.receive()
        assert said.startswith(b"Linux\n")
        async with await connected(port) as stream:
            await stream.send(b"\x05\x01\x00")
            assert await stream.receive() == b"\x05\x00"
            await stream.send(b"\x05\x01\x00\x01\x7f\x00\x00\x01" + (8888).to_bytes(2, "big") + b"hello")
            answer = b""
            while b"this is" not in answer:
                answer += await stream.receive()
            assert answer.endswith(b"this is dev-ann/mydev")
        editor.terminate()


async def test_a_port_is_forwarded_for_as_long_as_the_client_runs(bastion: Loopback):
    port = free_port()
    command = ["ssh", *options(bastion), "-N", "-L", f"{port}:mydev:8888", "ann@127.0.0.1"]
    async with await anyio.open_process(command) as client:
        for _ in range(2):
            async with await connected(port) as stream:
                await stream.send(b"hello")
                assert await stream.receive() == b"this is dev-ann/mydev"
        client.terminate()


@pytest.mark.attack(46)
@pytest.mark.parametrize(
    ("words", "reason", "sentence"),
    [
        (["-A"], "a forwarded agent", b"Agent forwarding is refused."),
        (["-X"], "a forwarded X11 display", b"X11 forwarding is refused."),
        (["-R", "0:localhost:22"], "a forward to the client of localhost", b"(-R) is refused."),
        (["-R", "/run/x:localhost:22"], "a forward to the client of /run/x", b"(-R) is refused."),
    ],
)
async def test_what_is_refused_is_said_to_the_user_and_written_down(
    bastion: Loopback, tmp_path: Path, words: list[str], reason: str, sentence: bytes
):
    env = {"DISPLAY": ":99", "SSH_AUTH_SOCK": str(tmp_path / "agent")}
    command = ["env", *(f"{name}={value}" for name, value in env.items()), "ssh"]
    command += [*options(bastion), *words, "ann+mydev@127.0.0.1", "echo out; exit 3"]
    async with asyncssh_agent(tmp_path / "agent"):
        done = await bastion.run(command)
    assert (done.returncode, done.stdout) == (3, b"out\n"), done.stderr
    assert sentence in done.stderr
    assert [one.reason for one in bastion.records if one.event is AuditEvent.REFUSED] == [reason]


@asynccontextmanager
async def asyncssh_agent(path: Path) -> AsyncGenerator[None]:
    """A socket where an agent would be: the client offers no forwarding without one."""
    async with await anyio.create_unix_listener(path) as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, _hang_up)
        yield
        group.cancel_scope.cancel()


async def _hang_up(stream: SocketStream) -> None:
    await stream.aclose()


async def test_a_socket_of_a_server_is_not_forwarded(bastion: Loopback):
    async with asyncssh.connect(
        "127.0.0.1", bastion.port, username="ann+mydev", client_keys=[str(bastion.key("ann"))],
        known_hosts=None, config=None,
    ) as connection:  # fmt: skip
        with pytest.raises(asyncssh.ChannelOpenError, match="sockets are not forwarded"):
            await connection.open_unix_connection("/run/docker.sock")
