"""Joins a session to a command that runs in a container, for Pods without an SSH server."""

import asyncio
from typing import TYPE_CHECKING, Final

import anyio

from neorion.devservers.decide.console import session_command, signal_command
from neorion.devservers.ports import Containers, RunningCommand
from neorion.keel.base import Error, Invalid
from neorion.keel.kube.streams import ContainerRef, OutputStream, TerminalSize
from neorion.keel.run import only_error
from neorion.keel.telemetry import logger

if TYPE_CHECKING:
    from neorion.devservers.bastion.session import Session

log = logger(__name__)

# asyncssh's number of the extended stream that is stderr.
_STDERR: Final = 1
# The API server takes a command in the address of a request.
COMMAND_MAX: Final = 64 * 1024
# Input that waits for the API server. The client is paused above the one and resumed below the other.
_QUEUE_HIGH: Final = 256 * 1024
_QUEUE_LOW: Final = 64 * 1024
_SIGNALS: Final = frozenset(["HUP", "INT", "KILL", "QUIT", "TERM", "USR1", "USR2"])
_CLEANUP_S: Final = 10


class ExecSession:
    """A `Peer` of a session: queues the client's input and sends it in order."""

    def __init__(self, session: "Session", name: str) -> None:
        self.name = name
        self._session = session
        # Parts of the input, of which an empty one is its end, and sizes of the terminal.
        self._queue: asyncio.Queue[bytes | TerminalSize] = asyncio.Queue()
        self._queued = 0
        self._signals: asyncio.Queue[str] = asyncio.Queue()

    def feed(self, data: bytes) -> None:
        self._queue.put_nowait(data)
        self._queued += len(data)
        if self._queued > _QUEUE_HIGH:
            self._session.channel.pause_reading()

    def feed_eof(self) -> None:
        self._queue.put_nowait(b"")

    def resize(self, columns: int, rows: int) -> None:
        self._queue.put_nowait(TerminalSize(columns, rows))

    def signal(self, name: str) -> None:
        if name in _SIGNALS:
            self._signals.put_nowait(name)

    def pause(self) -> None:
        """The session's `writable` says the same, and the output waits for that."""

    def resume(self) -> None:
        """Nothing to do, see `pause`."""

    def close(self) -> None:
        """The session's task is cancelled, which ends the command."""

    async def send_input(self, command: RunningCommand) -> None:
        while True:
            part = await self._queue.get()
            if isinstance(part, TerminalSize):
                await command.resize(part)
            elif not part:
                await command.close_stdin()
            else:
                await command.write(part)
                before, self._queued = self._queued, self._queued - len(part)
                if before > _QUEUE_LOW >= self._queued:
                    self._session.channel.resume_reading()

    async def send_signals(self, containers: Containers, container: ContainerRef) -> None:
        while True:
            await send_signal(containers, container, self.name, await self._signals.get())


async def run_in_container(
    session: "Session", containers: Containers, container: ContainerRef, name: str
) -> None:
    """Runs the session's shell, command or subsystem until it ends. `name` is the session's, unique in the cluster."""
    channel = session.channel
    terminal, command, subsystem = channel.get_terminal_type(), channel.get_command(), channel.get_subsystem()
    if command is not None and (len(command) > COMMAND_MAX or "\0" in command):
        raise Invalid(
            "devservers.command",
            f"The command has more than {COMMAND_MAX} characters, or a NUL among them.",
            hint="Send it through the standard input of a shell.",
        )
    environment = {**channel.get_environment(), **({"TERM": terminal} if terminal else {})}
    argv = session_command(name, command, subsystem, environment)
    peer = ExecSession(session, name)
    ended = False
    try:
        async with containers.execute(container, argv, tty=terminal is not None) as running:
            if terminal is not None:
                columns, rows, *_ = channel.get_terminal_size()
                await running.resize(TerminalSize(columns, rows))
            session.join(peer)
            async with anyio.create_task_group() as group:
                group.start_soon(peer.send_input, running)
                group.start_soon(peer.send_signals, containers, container)
                async for output in running:
                    await session.writable.wait()
                    session.write(output.data, _STDERR if output.stream is OutputStream.STDERR else None)
                group.cancel_scope.cancel()
            ended = True
            session.exit(running.code or 0)
    except BaseExceptionGroup as group:
        raise only_error(group) from None
    finally:
        if not ended:
            # The command's terminal belongs to the node, so the end of the connection does not reach it.
            await send_signal(containers, container, name, "HUP")


async def send_signal(containers: Containers, container: ContainerRef, session: str, signal: str) -> None:
    try:
        with anyio.move_on_after(_CLEANUP_S):
            async with containers.execute(container, signal_command(session, signal), tty=False) as running:
                async for _ in running:
                    pass
    except (Error, BaseExceptionGroup) as error:
        log.info("signal not sent", session=session, signal=signal, error=str(error))
