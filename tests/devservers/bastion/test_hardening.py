"""The algorithms that the bastion offers, and floods before and after a login."""

import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import asyncssh
import pytest
from anyio.abc import SocketStream

from neorion.devservers.bastion import Limits
from neorion.devservers.model.audit import AuditEvent
from tests.devservers.bastion.loopback import Loopback, loopback, make_key

pytestmark = [pytest.mark.anyio, pytest.mark.needs("ssh"), pytest.mark.attack(47)]

AUDIT = str(Path(sys.executable).with_name("ssh-audit"))
GOOD, WARNINGS, FAILURES = 0, 2, 3
WEAK = [
    ("KexAlgorithms", "ecdh-sha2-nistp256"),
    ("Ciphers", "aes128-cbc"),
    ("Ciphers", "3des-cbc"),
    ("MACs", "hmac-sha1"),
    ("HostKeyAlgorithms", "ssh-rsa"),
]


async def judged(port: int) -> "tuple[int, dict[str, Any]]":
    """ssh-audit's verdict. Its measurement of the rate of connections is a load test."""
    command = [AUDIT, "--skip-rate-test", "-j", "-p", str(port), "127.0.0.1"]
    done = await anyio.run_process(command, check=False, stderr=subprocess.STDOUT)
    return done.returncode, json.loads(done.stdout)


def notes(verdict: dict[str, Any], kind: str) -> dict[str, list[str]]:
    """The algorithms with failures or warnings, and their reasons."""
    lists = [verdict[name] for name in ("kex", "key", "enc", "mac")]
    found = {one["algorithm"]: one.get("notes", {}).get(kind) for some in lists for one in some}
    return {name: reasons for name, reasons in found.items() if reasons}


def _succeed(process: asyncssh.SSHServerProcess[bytes]) -> None:
    process.exit(0)


@asynccontextmanager
async def permissive(folder: Path) -> AsyncGenerator[int]:
    """The control: a server that offers all that asyncssh knows."""
    server = await asyncssh.listen(
        "127.0.0.1", 0, config=None, kex_algs="*", encryption_algs="*", mac_algs="*", encoding=None,
        signature_algs="*", authorized_client_keys=str(folder / "ann.pub"), process_factory=_succeed,
        server_host_keys=[asyncssh.generate_private_key(kind) for kind in ("ssh-ed25519", "ssh-rsa")],
    )  # fmt: skip
    try:
        yield server.get_port()
    finally:
        server.close()
        await server.wait_closed()


async def test_ssh_audit_finds_nothing_where_key_exchange_is_post_quantum(tmp_path: Path):
    async with loopback(tmp_path, Limits(post_quantum=True)) as bastion:
        code, verdict = await judged(bastion.port)
    assert (code, notes(verdict, "fail"), notes(verdict, "warn")) == (GOOD, {}, {})


async def test_ssh_audit_warns_of_the_key_exchange_for_older_clients_alone(tmp_path: Path):
    async with loopback(tmp_path) as bastion:
        code, verdict = await judged(bastion.port)
    assert (code, notes(verdict, "fail")) == (WARNINGS, {})
    warned = notes(verdict, "warn")
    assert set(warned) == {"curve25519-sha256", "curve25519-sha256@libssh.org"}
    assert all("post-quantum" in reason for reasons in warned.values() for reason in reasons)
    assert "kex-strict-s-v00@openssh.com" in {one["algorithm"] for one in verdict["kex"]}


async def test_ssh_audit_fails_a_server_that_offers_everything(tmp_path: Path):
    await make_key(tmp_path, "ann")
    async with permissive(tmp_path) as port:
        code, verdict = await judged(port)
    assert code == FAILURES
    assert notes(verdict, "fail")


@pytest.mark.parametrize(("option", "weak"), WEAK)
async def test_a_client_that_offers_weak_algorithms_alone_is_refused(tmp_path: Path, option: str, weak: str):
    async with loopback(tmp_path) as bastion, permissive(tmp_path) as port:
        command = [*bastion.command("ann")[:-1], "-o", f"{option}={weak}", "-o", "Ciphers=aes256-ctr"]
        command = [one.replace("LogLevel=ERROR", "LogLevel=INFO") for one in command]
        refused = await bastion.run([*command, "ann@127.0.0.1", "true"])
        other = [one.replace(f"Port={bastion.port}", f"Port={port}") for one in command]
        admitted = await bastion.run([*other, "ann@127.0.0.1", "true"])
    assert refused.returncode == 255
    assert b"no matching" in refused.stderr
    assert admitted.returncode == 0, admitted.stderr


@asynccontextmanager
async def logged_in(
    bastion: Loopback, name: str = "ann+mydev"
) -> AsyncGenerator[asyncssh.SSHClientConnection]:
    async with asyncssh.connect(
        "127.0.0.1", bastion.port, username=name, client_keys=[str(bastion.key("ann"))],
        known_hosts=None, config=None,
    ) as connection:  # fmt: skip
        yield connection


@pytest.mark.parametrize(("channels", "refused"), [(20, 80), (200, 0)])
async def test_a_flood_of_channels_ends_at_the_users_limit(tmp_path: Path, channels: int, refused: int):
    """Of 100 forwards and sessions; the second row is the control."""
    async with loopback(tmp_path, spec={"limits": {"channels": channels}}) as bastion:
        failed: list[asyncssh.ChannelOpenError] = []
        async with logged_in(bastion) as connection:

            async def forward() -> None:
                try:
                    await connection.open_connection("localhost", 8888, encoding=None)
                except asyncssh.ChannelOpenError as error:
                    failed.append(error)

            async with anyio.create_task_group() as group:
                for _ in range(100):
                    group.start_soon(forward)
            assert [error.reason for error in failed] == ["you have too many channels open"] * refused
            written = [one.reason for one in bastion.records if one.event is AuditEvent.REFUSED]
            assert written == ["too many channels of this user"] * refused
        # They are free again with the connection.
        async with logged_in(bastion) as connection:
            assert (await connection.run("echo again")).stdout == "again\n"


async def test_a_session_that_never_begins_counts_as_a_channel(tmp_path: Path):
    async with (
        loopback(tmp_path, spec={"limits": {"channels": 3}}) as bastion,
        logged_in(bastion) as connection,
    ):
        for _ in range(3):
            await connection.open_connection("localhost", 8888, encoding=None)
        with pytest.raises(asyncssh.ChannelOpenError, match="too many channels"):
            await connection.run("true")


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"LC_V": "x"}, 1),
        ({f"LC_V{number}": "x" for number in range(1_000)}, 64),
        ({"LC_V": "x" * 40_000}, 0),
    ],
)
async def test_variables_of_a_session_are_bounded(tmp_path: Path, sent: dict[str, str], kept: int):
    async with loopback(tmp_path) as bastion, logged_in(bastion, "ann") as connection:
        done = await connection.run("env | grep -c ^LC_V", env=sent)
    assert done.stdout == f"{kept}\n"


@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-x\r\n" + (256 * 1024 + 1).to_bytes(4, "big") + b"x" * 1_000,
        b"SSH-2.0-x\r\n" + (2**32 - 1).to_bytes(4, "big") + b"x" * 16,
        b"SSH-2.0-" + b"x" * 100_000,
        b"GET / HTTP/1.1\r\n" * 10_000,
        b"SSH-1.5-old\r\n",
    ],
    ids=["packet", "huge", "version", "http", "old"],
)
async def test_what_is_no_ssh_is_hung_up_on_and_others_log_in(tmp_path: Path, said: bytes):
    async with loopback(tmp_path) as bastion:
        async with await anyio.connect_tcp("127.0.0.1", bastion.port) as stream:
            with anyio.fail_after(10):
                await hear_out(stream, said)
        assert (await bastion.ssh("ann+mydev", "true")).returncode == 0


async def hear_out(stream: SocketStream, said: bytes) -> None:
    """Returns when the other side has closed."""
    try:
        await stream.send(said)
        while True:
            await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return


async def test_a_login_that_takes_too_long_is_hung_up_on(tmp_path: Path):
    async with (
        loopback(tmp_path, Limits(grace_s=0.3)) as bastion,
        await anyio.connect_tcp("127.0.0.1", bastion.port) as stream,
    ):
        with anyio.fail_after(10):
            await hear_out(stream, b"SSH-2.0-slow\r\n")
