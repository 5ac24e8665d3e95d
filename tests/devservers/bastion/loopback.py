"""A bastion on loopback, for the stock OpenSSH client.

Users are in memory, servers are SSH servers of this process, and containers are programs of this machine.
"""

import asyncio
import os
import subprocess
import termios
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import anyio
import anyio.to_thread
import asyncssh
from anyio.abc import ByteReceiveStream, ByteSendStream, ByteStream, SocketAttribute

from neorion.devservers.adapters.identity import UserAuthorities
from neorion.devservers.bastion import (
    DEFAULT_LIMITS,
    AuditLog,
    Context,
    Directory,
    FirstLogins,
    Limits,
    Signer,
    listen,
)
from neorion.devservers.decide import SSH_PORT
from neorion.devservers.decide.audit import parse
from neorion.devservers.decide.tenant import authorized_keys
from neorion.devservers.model.audit import AuditRecord
from neorion.devservers.model.kube_types import USERS
from neorion.devservers.model.user import DevServerUserSpec
from neorion.devservers.ports import RunningServer
from neorion.keel.base import NotFound
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.kube import MergePatch, ObjectKey
from neorion.keel.kube.control import InformerFactory
from neorion.keel.kube.streams import ContainerRef, ExecOutput, OutputStream, TerminalSize
from neorion.keel.kube.testing import MemoryApi, MemoryCluster
from neorion.keel.run import create_owned_task


@dataclass
class LoopbackServers:
    """Each server is a listener of this machine for each of its ports. `asleep` wake when they are asked for."""

    ports: dict[ObjectKey, dict[int, int]] = field(default_factory=dict[ObjectKey, dict[int, int]])
    host_keys: dict[ObjectKey, str] = field(default_factory=dict[ObjectKey, str])
    asleep: set[ObjectKey] = field(default_factory=set[ObjectKey])
    without_ssh: set[ObjectKey] = field(default_factory=set[ObjectKey])
    sessions: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def run(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        """A session of a server, which ends when the server does."""
        task = create_owned_task(_run(process), "session of a server")
        self.sessions.add(task)
        task.add_done_callback(self.sessions.discard)
        await task

    async def close(self) -> None:
        for task in self.sessions:
            task.cancel()
        if self.sessions:
            await asyncio.wait(self.sessions)

    async def wake(self, server: ObjectKey, tell: Callable[[str], None]) -> RunningServer:
        if server not in self.ports:
            raise NotFound(
                "devservers.no_server", f'There is no server "{server.name}" in {server.namespace}.'
            )
        if server in self.asleep:
            self.asleep.remove(server)
            tell(f"{server.name} is stopped. Starting it.")
        host_key = "" if server in self.without_ssh else self.host_keys.get(server, "")
        return RunningServer(server.name, server.namespace, "pod", host_key=host_key)

    @asynccontextmanager
    async def connect(self, server: RunningServer, port: int) -> AsyncGenerator[ByteStream]:
        here = self.ports[ObjectKey(server.namespace, server.name)].get(port)
        if here is None:
            raise NotFound("kube.port", f"Nothing listens on port {port} of {server.name}.")
        async with await anyio.connect_tcp("127.0.0.1", here) as stream:
            yield stream


class LocalCommand:
    """A program of this machine as a command in a container, on a terminal or on pipes."""

    def __init__(self, process: Process, master: int | None) -> None:
        self._process = process
        self._master = master
        self.code: int | None = None

    async def write(self, data: bytes) -> None:
        if self._master is not None:
            await anyio.to_thread.run_sync(os.write, self._master, data)
        elif self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.write(data)
                await self._process.stdin.drain()

    async def close_stdin(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def resize(self, size: TerminalSize) -> None:
        if self._master is not None:
            termios.tcsetwinsize(self._master, (size.rows, size.columns))

    async def __aiter__(self) -> AsyncIterator[ExecOutput]:
        parts: asyncio.Queue[ExecOutput | None] = asyncio.Queue(1)
        async with anyio.create_task_group() as group:
            group.start_soon(self._read, parts)
            while (part := await parts.get()) is not None:
                yield part
        self.code = await self._process.wait()

    async def _read(self, parts: "asyncio.Queue[ExecOutput | None]") -> None:
        async with anyio.create_task_group() as group:
            if self._master is not None:
                group.start_soon(self._read_terminal, self._master, parts)
            for stream, source in (
                (OutputStream.STDOUT, self._process.stdout),
                (OutputStream.STDERR, self._process.stderr),
            ):
                if source is not None:
                    group.start_soon(self._read_pipe, stream, source, parts)
        await parts.put(None)

    async def _read_pipe(
        self, stream: OutputStream, source: asyncio.StreamReader, parts: "asyncio.Queue[ExecOutput | None]"
    ) -> None:
        while data := await source.read(32_768):
            await parts.put(ExecOutput(stream, data))

    async def _read_terminal(self, master: int, parts: "asyncio.Queue[ExecOutput | None]") -> None:
        # A terminal whose last program is gone is an error to read.
        with suppress(OSError):
            while True:
                await anyio.wait_readable(master)
                await parts.put(ExecOutput(OutputStream.STDOUT, os.read(master, 32_768)))


@dataclass
class LoopbackContainers:
    """Every container is this machine. `home` is the folder that commands start in."""

    home: Path
    started: list[str] = field(default_factory=list[str])
    processes: list[Process] = field(default_factory=list[Process])

    async def console(self, user: str, tell: Callable[[str], None]) -> ContainerRef:
        if user not in self.started:
            self.started.append(user)
            tell("Starting your console.")
        return ContainerRef("console", f"dev-{user}", "console")

    @asynccontextmanager
    async def execute(
        self, container: ContainerRef, command: Sequence[str], *, tty: bool
    ) -> AsyncGenerator[LocalCommand]:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "CONTAINER": container.pod}
        master, slave = os.openpty() if tty else (None, PIPE)
        prefix = ["setsid", "--ctty", "--wait"] if tty else ["setsid", "--wait"]
        process = await asyncio.create_subprocess_exec(
            *prefix, *command, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=self.home
        )
        self.processes.append(process)
        if tty:
            os.close(slave)
        try:
            yield LocalCommand(process, master)
        finally:
            # The program goes on, as one in a container does.
            if master is not None:
                os.close(master)

    async def close(self) -> None:
        for process in self.processes:
            if process.returncode is None:
                process.kill()
            await process.communicate()


async def _run(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """As a shell in a server would."""
    if process.command is None and process.term_type is not None:
        columns, rows, _, _ = process.term_size
        process.stdout.write(f"terminal {columns}x{rows}\r\n".encode())
        while True:
            try:
                line = await process.stdin.readline()
            except asyncssh.TerminalSizeChanged as changed:
                process.stdout.write(f"resized {changed.width}x{changed.height}\r\n".encode())
                continue
            if not line or b"exit" in line:
                process.exit(9)
                return
    if process.command == "die":
        process.exit_with_signal("KILL")
        return
    command = process.command or "cat"
    # Leaving the block kills the program and waits for its end.
    async with await anyio.open_process(command) as inner:
        assert inner.stdin is not None
        assert inner.stdout is not None
        assert inner.stderr is not None
        async with anyio.create_task_group() as group:
            group.start_soon(_feed, process, inner.stdin)
            async with anyio.create_task_group() as outputs:
                outputs.start_soon(_copy, inner.stdout, process.stdout)
                outputs.start_soon(_copy, inner.stderr, process.stderr)
            process.exit(await inner.wait())
            group.cancel_scope.cancel()


async def _feed(process: asyncssh.SSHServerProcess[bytes], stdin: ByteSendStream) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        while data := await process.stdin.read(32_768):
            await stdin.send(data)
        await stdin.aclose()


async def _copy(source: ByteReceiveStream, target: asyncssh.SSHWriter[bytes]) -> None:
    async for data in source:
        target.write(data)
        await target.drain()


@dataclass
class Loopback:
    """The bastion, and what a test reaches it by. `authority` is the public key that it signs with."""

    folder: Path
    port: int
    authority: str
    api: MemoryApi
    servers: LoopbackServers
    context: Context
    listening: AsyncExitStack

    async def stop(self) -> None:
        """Ends the bastion in order, as SIGTERM does."""
        await self.listening.aclose()

    def key(self, name: str) -> Path:
        return self.folder / name

    @property
    def records(self) -> list[AuditRecord]:
        lines = (self.folder / "audit.jsonl").read_bytes().splitlines()
        return [record for line in lines if (record := parse(line)) is not None]

    def command(self, login: str, *words: str, key: str = "ann", program: str = "ssh") -> list[str]:
        options = {
            "IdentityFile": str(self.key(key)),
            "IdentitiesOnly": "yes",
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": str(self.folder / "known_hosts"),
            "LogLevel": "ERROR",
            "Port": str(self.port),
        }
        given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        if program != "ssh":
            return [program, "-F", "none", *given, *words]
        flags = [word for word in words if word.startswith("-")]
        return [program, "-F", "none", *given, *flags, f"{login}@127.0.0.1", *words[len(flags) :]]

    async def ssh(
        self, login: str, *words: str, key: str = "ann", say: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        return await self.run(self.command(login, *words, key=key), say)

    async def run(self, command: list[str], say: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        env = {**os.environ, "HOME": str(self.folder), "TERM": "dumb"}
        with anyio.fail_after(60):
            return await anyio.run_process(command, input=say, check=False, env=env)


async def make_key(folder: Path, name: str) -> str:
    await anyio.run_process(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
    )
    return (folder / f"{name}.pub").read_text().strip()


@asynccontextmanager
async def loopback(
    folder: Path, limits: Limits = DEFAULT_LIMITS, spec: Mapping[str, object] = MappingProxyType({})
) -> AsyncGenerator[Loopback]:
    """ann has a key and the servers mydev and sleepy; bob has both too."""
    clock, rng = SystemClock(), system_rng()
    api = MemoryApi(MemoryCluster(clock), clock, "bastion")
    authority = asyncssh.generate_private_key("ssh-ed25519")
    public = authority.export_public_key().decode().strip()
    servers = LoopbackServers()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(servers.close)
        for user in ("ann", "bob"):
            key = await make_key(folder, user)
            await api.create(USERS, {"metadata": {"name": user}, "spec": {"keys": [key], **spec}})
            provisioned = MergePatch({"status": {"phase": "Provisioned"}})
            await api.patch(USERS, user, provisioned, subresource="status")
            lines = authorized_keys(user, DevServerUserSpec(keys=(key,)), public)
            for name in ("mydev", "sleepy"):
                await _start_server(stack, servers, ObjectKey(f"dev-{user}", name), lines)
        servers.asleep.add(ObjectKey("dev-ann", "sleepy"))
        informers = InformerFactory(api, clock, rng)
        directory = Directory(informers)
        group = await stack.enter_async_context(anyio.create_task_group())
        group.start_soon(informers.run)
        await informers.wait_synced()
        containers = LoopbackContainers(folder)
        stack.push_async_callback(containers.close)
        audit = AuditLog(folder / "audit.jsonl")
        context = Context(
            directory,
            servers,
            containers,
            Signer(authority),
            FirstLogins(api, directory, clock),
            audit,
            clock,
            SystemIds(),
            limits,
            recordings_folder=folder / "recordings",
            authorities=UserAuthorities(folder / "ca.pub"),
        )
        key = asyncssh.generate_private_key("ssh-ed25519")
        identity = context.signer.host_identity(key, ["127.0.0.1"])
        async with AsyncExitStack() as listening:
            port = await listening.enter_async_context(listen(context, identity, "127.0.0.1", 0))
            yield Loopback(folder, port, public, api, servers, context, listening)
        audit.close()
        group.cancel_scope.cancel()


async def _start_server(stack: AsyncExitStack, servers: LoopbackServers, key: ObjectKey, lines: str) -> None:
    host = asyncssh.generate_private_key("ssh-ed25519")
    acceptor = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[host],
        authorized_client_keys=asyncssh.import_authorized_keys(lines),
        process_factory=servers.run,
        sftp_factory=True,
        encoding=None,
        allow_scp=True,
    )
    stack.push_async_callback(acceptor.wait_closed)
    stack.callback(acceptor.close)
    web = await anyio.create_tcp_listener(local_host="127.0.0.1")
    stack.push_async_callback(web.aclose)
    group = await stack.enter_async_context(anyio.create_task_group())
    stack.callback(group.cancel_scope.cancel)

    async def answer(stream: ByteStream) -> None:
        # Some clients hang up without a word.
        async with stream:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await stream.receive()
                await stream.send(f"this is {key}".encode())

    group.start_soon(web.serve, answer)
    local = web.extra(SocketAttribute.local_port)  # noqa: S610 -- anyio's, no SQL
    servers.ports[key] = {SSH_PORT: acceptor.get_port(), 8888: local}
    servers.host_keys[key] = host.export_public_key().decode().strip()
