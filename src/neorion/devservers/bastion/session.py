"""A session of a client: a shell, a command or a subsystem, joined to a program in a Pod."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

import asyncssh

from neorion.devservers.bastion.environment import limit_environment
from neorion.devservers.bastion.exec_session import run_in_container
from neorion.devservers.bastion.recordings import Recording, TerminalInfo
from neorion.devservers.bastion.upstream_session import run_upstream
from neorion.devservers.client import CONTAINER
from neorion.devservers.model.audit import AuditEvent
from neorion.keel.base import Error
from neorion.keel.kube.streams import ContainerRef
from neorion.keel.run import create_owned_task
from neorion.keel.telemetry import logger

if TYPE_CHECKING:
    from neorion.devservers.bastion.connection import Connection

log = logger(__name__)

# As ssh itself when it cannot connect: no program of a server ends like that by itself.
FAILED: Final = 255


class Peer(Protocol):
    """The program at the other end. None of these waits."""

    def feed(self, data: bytes) -> None: ...

    def feed_eof(self) -> None: ...

    def resize(self, columns: int, rows: int) -> None: ...

    def signal(self, name: str) -> None: ...

    def pause(self) -> None:
        """The client does not read: nothing more is to be written to it."""
        ...

    def resume(self) -> None: ...

    def close(self) -> None: ...


class Session(asyncssh.SSHServerSession[bytes]):
    """Reads nothing from the client before its peer is there, and holds up the one when the other is slow."""

    def __init__(self, connection: "Connection") -> None:
        self.connection = connection
        self.channel: asyncssh.SSHServerChannel[bytes]
        self.writable = asyncio.Event()
        self.writable.set()
        self._peer: Peer | None = None
        # What came before the peer was there. It is little: the channel is paused with its first piece.
        self._early = bytearray()
        self._early_eof = False
        self._task: asyncio.Task[None] | None = None
        self._code: int | None = None
        self._gone = False
        self._name = ""
        self._recording: Recording | None = None

    @property
    def command(self) -> str:
        """The command or the subsystem; empty for a shell."""
        return self.channel.get_command() or self.channel.get_subsystem() or ""

    @property
    def has_terminal(self) -> bool:
        return self.channel.get_terminal_type() is not None

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self.channel = chan
        limit_environment(chan)

    def pty_requested(self, term_type: str, term_size: tuple[int, ...], term_modes: object) -> bool:
        del term_type, term_size, term_modes
        return True

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        del command
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        del subsystem
        return True

    def session_started(self) -> None:
        self._task = create_owned_task(self._run(), f"session {self.connection.who.connection}")
        # It outlives the channel: what it started has to be ended.
        tasks = self.connection.context.tasks
        tasks.add(self._task)
        self._task.add_done_callback(tasks.discard)

    def join(self, peer: Peer) -> None:
        """Lets the client's input through to the peer."""
        self._peer = peer
        if self._early:
            peer.feed(bytes(self._early))
            self._early.clear()
        if self._early_eof:
            peer.feed_eof()
        if not self.writable.is_set():
            peer.pause()
        self.channel.resume_reading()

    def exit(self, code: int) -> None:
        """The output may have ended already: only a channel that is gone takes no exit code."""
        if not self._gone:
            self._code = code
            self.channel.exit(code)

    def close(self) -> None:
        if not self._gone:
            self.channel.close()

    def exit_with_signal(self, name: str, message: str, language: str, *, core_dumped: bool) -> None:
        if not self._gone:
            self.channel.exit_with_signal(name, core_dumped, message, language)

    def write(self, data: bytes, datatype: int | None) -> None:
        """Output of the peer, to stdout or stderr of the client. A session that cannot be recorded ends."""
        if self._recording is not None:
            try:
                self._recording.output(data)
            except Error as error:
                self.say(error.sentence, error.hint)
                self.exit(FAILED)
                return
        self.channel.write(data, datatype)  # pyright: ignore[reportUnknownMemberType] -- generic in texts and bytes

    def data_received(self, data: bytes, datatype: int | None) -> None:
        del datatype
        if self._peer is not None:
            self._peer.feed(data)
        else:
            self._early += data
            self.channel.pause_reading()

    def eof_received(self) -> bool:
        if self._peer is not None:
            self._peer.feed_eof()
        else:
            self._early_eof = True
        # The program may still answer.
        return True

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        del pixwidth, pixheight
        if self._recording is not None:
            with suppress(Error):
                self._recording.resize(width, height)
        if self._peer is not None:
            self._peer.resize(width, height)

    def signal_received(self, signal: str) -> None:
        if self._peer is not None:
            self._peer.signal(signal)

    def pause_writing(self) -> None:
        self.writable.clear()
        if self._peer is not None:
            self._peer.pause()

    def resume_writing(self) -> None:
        self.writable.set()
        if self._peer is not None:
            self._peer.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._gone = True
        self.connection.give_back_channel()
        if self._peer is not None:
            self._peer.close()
        if self._task is not None:
            self._task.cancel()

    def say(self, *lines: str) -> None:
        """To the client's stderr; a terminal in raw mode needs the carriage return."""
        for line in filter(None, lines):
            if not self.channel.is_closing():
                self.channel.write_stderr(f"{line}\r\n".encode())

    async def _run(self) -> None:
        context, who = self.connection.context, self.connection.who
        self.say(*self.connection.take_refusals())
        self._name = self.connection.next_session()
        self.connection.sessions.add(self)
        terminal = self.has_terminal
        try:
            recording = self._record()
            context.record(
                AuditEvent.SESSION, who, command=self.command, terminal=terminal, recording=recording
            )
            await self._serve()
        except Error as error:
            self.say(error.sentence, error.hint)
            self.exit(FAILED)
        except Exception as error:  # noqa: BLE001 -- whatever it was, the client must not wait for ever
            log.failure("session failed", error, connection=who.connection)
            self.say("The session failed. Tell an administrator its number.", who.connection)
            self.exit(FAILED)
        finally:
            self.connection.sessions.discard(self)
            name, digest = self._close_recording()
            context.record(
                AuditEvent.SESSION_END,
                who,
                command=self.command,
                exit_code=self._code,
                recording=name,
                digest=digest,
            )

    async def _serve(self) -> None:
        await self.connection.provisioned(self.say)
        context, upstream = self.connection.context, self.connection.upstream
        if upstream is None:
            console = await context.containers.console(self.connection.login.user, self.say)
            await run_in_container(self, context.containers, console, self._name)
            return
        server = await upstream.connection(self.say)
        if server is not None:
            await run_upstream(self, server)
        elif upstream.running is not None:
            running = upstream.running
            container = ContainerRef(running.pod, running.namespace, CONTAINER)
            await run_in_container(self, context.containers, container, self._name)

    def _record(self) -> str:
        """Begins the recording of a terminal. Returns its name; empty where nothing is recorded."""
        kind = self.channel.get_terminal_type()
        if kind is None:
            return ""
        columns, rows, *_ = self.channel.get_terminal_size()
        login = self.connection.login
        title = f"{login.user}+{login.server}" if login.server else login.user
        recordings = self.connection.context.recordings
        self._recording = recordings.open(self._name, TerminalInfo(columns, rows, kind, title))
        return self._name if self._recording is not None else ""

    def _close_recording(self) -> tuple[str, str]:
        recording, self._recording = self._recording, None
        if recording is None:
            return "", ""
        recording.close()
        return recording.name, recording.digest
