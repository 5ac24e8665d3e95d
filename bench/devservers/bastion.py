"""The SSH bastion beside bare asyncssh and OpenSSH's sshd, on loopback: logins, bursts, typing and copies.

`NEORION_BENCH_SECONDS` says how long 150 sessions type (20; 300 for the long run), `NEORION_BENCH_MIB` how much is copied.
"""

import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import asyncssh

from bench.kit import Report
from bench.process import cpu_s, memory_mb

TYPING_S = float(os.environ.get("NEORION_BENCH_SECONDS", "20"))
COPY_MIB = int(os.environ.get("NEORION_BENCH_MIB", "256"))
SESSIONS, BURST, KEYS_PER_S = 150, 300, 2.0


@dataclass(frozen=True)
class Stage:
    """The ports of the three servers, and the bastion's process."""

    folder: Path
    bastion: int
    bare: int
    sshd: int
    pid: int


@contextmanager
def process(*words: str) -> Generator["tuple[subprocess.Popen[str], int]"]:
    """A server of this benchmark, and the port that it prints."""
    command = [sys.executable, "-m", "bench.devservers.bastion_host", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as made:
        assert made.stdout is not None
        try:
            yield made, int(made.stdout.readline())
        finally:
            made.kill()


@contextmanager
def sshd(folder: Path) -> Generator[int]:
    """OpenSSH's own server, for the user of this machine who runs the benchmark."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "host"], check=True)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    authorized = folder / "authorized_keys"
    lines = {
        "ListenAddress": "127.0.0.1", "Port": port, "HostKey": folder / "host", "StrictModes": "no",
        "AuthorizedKeysFile": authorized, "UsePAM": "no", "PidFile": "none", "PermitRootLogin": "yes",
    }  # fmt: skip
    (folder / "sshd_config").write_text("".join(f"{key} {value}\n" for key, value in lines.items()))
    Path("/run/sshd").mkdir(exist_ok=True)
    program = shutil.which("sshd", path="/usr/sbin:/usr/bin") or "sshd"
    with subprocess.Popen(
        [program, "-D", "-e", "-f", folder / "sshd_config"], stderr=subprocess.DEVNULL
    ) as made:
        try:
            yield port
        finally:
            made.kill()


@contextmanager
def stage() -> Generator[Stage]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with sshd(folder) as port, process(name, str(port)) as (made, bastion), process(name) as (_, bare):
            (folder / "authorized_keys").write_text((folder / "ann.pub").read_text())
            yield Stage(folder, bastion, bare, port, made.pid)


@asynccontextmanager
async def connection(at: Stage, port: int) -> AsyncGenerator[asyncssh.SSHClientConnection]:
    async with asyncssh.connect(
        "127.0.0.1", port, username="ann", client_keys=[str(at.folder / "ann")], known_hosts=None, config=None,
        connect_timeout=60, login_timeout=60,
    ) as made:  # fmt: skip
        yield made


def login_and_command(at: Stage, port: int) -> Callable[[], float]:
    async def once() -> float:
        began = time.perf_counter()
        async with connection(at, port) as made:
            await made.run("true", check=True)
        return (time.perf_counter() - began) * 1000

    return lambda: anyio.run(once)


def logins_at_once(at: Stage, port: int) -> Callable[[], float]:
    async def one(stack: AsyncExitStack) -> None:
        await stack.enter_async_context(connection(at, port))

    async def burst() -> float:
        async with AsyncExitStack() as stack:
            began = time.perf_counter()
            async with anyio.create_task_group() as group:
                for _ in range(BURST):
                    group.start_soon(one, stack)
            return time.perf_counter() - began

    return lambda: anyio.run(burst)


@dataclass
class Typed:
    """What 150 sessions that type for a while have seen, and what they cost."""

    echoes_ms: list[float]
    cpu_percent: float
    mib_each: float

    def quantile(self, of: float) -> float:
        return sorted(self.echoes_ms)[int(of * (len(self.echoes_ms) - 1))]


async def typing(at: Stage) -> Typed:
    """Each session has a login of its own and a terminal, types a letter now and then, and waits for its echo."""
    rng = random.Random(1)
    echoes: list[float] = []
    before = memory_mb(at.pid, "VmRSS")
    async with AsyncExitStack() as stack:
        terminals: list[asyncssh.SSHClientProcess[bytes]] = []
        for _ in range(SESSIONS):
            made = await stack.enter_async_context(connection(at, at.bastion))
            # The program is quiet, so that what comes back is the terminal's echo.
            terminals.append(await made.create_process("sleep 100000", term_type="xterm", encoding=None))
        await anyio.sleep(1)
        each = (memory_mb(at.pid, "VmRSS") - before) / SESSIONS
        cpu, began = cpu_s(at.pid), time.perf_counter()

        async def one(terminal: asyncssh.SSHClientProcess[bytes], pause: float) -> None:
            await anyio.sleep(pause)
            while time.perf_counter() < began + TYPING_S:
                pressed = time.perf_counter()
                terminal.stdin.write(b"x")
                with anyio.fail_after(30):
                    await terminal.stdout.read(1)
                echoes.append((time.perf_counter() - pressed) * 1000)
                await anyio.sleep(rng.uniform(0.5, 1.5) / KEYS_PER_S)

        async with anyio.create_task_group() as group:
            for terminal in terminals:
                group.start_soon(one, terminal, rng.uniform(0, 1 / KEYS_PER_S))
        share = (cpu_s(at.pid) - cpu) / (time.perf_counter() - began) * 100
    return Typed(echoes, share, each)


def copy(at: Stage, *words: str) -> Callable[[], float]:
    """MiB/s of zeros into a program at the other end, by the stock client."""
    known = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]
    ssh = ["ssh", "-F", "none", "-i", str(at.folder / "ann"), "-o", "IdentitiesOnly=yes", *known]
    ssh += ["-o", "Ciphers=aes128-gcm@openssh.com"]
    through = " ".join([*ssh, "-p", str(at.bastion), "-W", "%h:%p", "ann@127.0.0.1"])
    ssh += [word.replace("THROUGH", through) for word in words]

    def once() -> float:
        began = time.perf_counter()
        with subprocess.Popen(["head", "-c", f"{COPY_MIB}M", "/dev/zero"], stdout=subprocess.PIPE) as source:
            subprocess.run([*ssh, "cat >/dev/null"], stdin=source.stdout, check=True)
        return COPY_MIB / (time.perf_counter() - began)

    return once


def run(report: Report) -> None:
    with stage() as at:
        login = report.compare(
            "login and command",
            "ms",
            login_and_command(at, at.bastion),
            ("bare asyncssh", login_and_command(at, at.bare)),
        )
        burst = report.compare(
            f"{BURST} logins at once",
            "s",
            logins_at_once(at, at.bastion),
            ("bare asyncssh", logins_at_once(at, at.bare)),
            3,
        )
        user = Path.home().owner()
        direct = copy(at, "-p", str(at.sshd), f"{user}@127.0.0.1")
        jump = report.compare(
            f"copy of {COPY_MIB} MiB by -J",
            "MiB/s",
            copy(at, "-o", "ProxyCommand=THROUGH", f"{user}@mydev"),
            ("sshd", direct),
            3,
        )
        console = report.compare(
            f"copy of {COPY_MIB} MiB into a console",
            "MiB/s",
            copy(at, "-p", str(at.bastion), "ann@127.0.0.1"),
            ("sshd", direct),
            3,
        )
        typed = anyio.run(typing, at)
    rows = (
        ("login and command", f"{statistics.median(login.ours):.0f} ms", "300 ms, 3 x bare asyncssh"),
        ("SSH connection time, the slowest", f"{max(login.ours) / 1000:.2f} s", "2 s"),
        (f"{BURST} logins at once", f"{statistics.median(burst.ours):.1f} s", "3 s"),
        ("users at once", f"{SESSIONS}", "100"),
        (f"echo of a key, p50 of {len(typed.echoes_ms)}", f"{typed.quantile(0.5):.1f} ms", ""),
        ("echo of a key, p99", f"{typed.quantile(0.99):.1f} ms", ""),
        ("CPU of the bastion, of one core", f"{typed.cpu_percent:.0f} %", ""),
        ("memory of a session", f"{typed.mib_each:.2f} MiB", ""),
        ("copy by -J, of sshd's own rate", f"{statistics.median(jump.ratios):.2f}", "0.7"),
        ("copy into a console, of sshd's own rate", f"{statistics.median(console.ratios):.2f}", "0.7"),
    )
    print(f"\n| metric | measured [load {os.getloadavg()[0]:.1f}] | goal |\n|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
