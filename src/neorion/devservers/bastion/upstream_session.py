"""Joins a session to a program that the sshd of a server runs."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import asyncssh

if TYPE_CHECKING:
    from neorion.devservers.bastion.session import Session

_ENVIRONMENT: Final = ("LANG", "LC_")


class UpstreamSession(asyncssh.SSHClientSession[bytes]):
    """The program's channel. Both outputs, its end and its exit code go to the client as they come."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        # A program may end without an exit code, and the client then hears of none.
        self._end: Callable[[], None] = session.close

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if not self._session.channel.is_closing():
            self._session.write(data, datatype)

    def eof_received(self) -> bool:
        if not self._session.channel.is_closing():
            self._session.channel.write_eof()
        return True

    def exit_status_received(self, status: int) -> None:
        # It may come before the last of the output.
        self._end = lambda: self._session.exit(status)

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:  # noqa: FBT001 -- asyncssh's own
        self._end = lambda: self._session.exit_with_signal(signal, msg, lang, core_dumped=core_dumped)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._end()

    def pause_writing(self) -> None:
        """The server does not read: the client has to wait."""
        self._session.channel.pause_reading()

    def resume_writing(self) -> None:
        self._session.channel.resume_reading()

    def feed(self, data: bytes) -> None:
        if self._channel is not None and not self._channel.is_closing():
            self._channel.write(data)  # pyright: ignore[reportUnknownMemberType] -- as below

    def feed_eof(self) -> None:
        if self._channel is not None and not self._channel.is_closing():
            self._channel.write_eof()

    def resize(self, columns: int, rows: int) -> None:
        if self._channel is not None:
            self._channel.change_terminal_size(columns, rows)

    def signal(self, name: str) -> None:
        if self._channel is not None and not self._channel.is_closing():
            self._channel.send_signal(name)

    def pause(self) -> None:
        if self._channel is not None:
            self._channel.pause_reading()

    def resume(self) -> None:
        if self._channel is not None:
            self._channel.resume_reading()

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()


async def run_upstream(session: "Session", server: asyncssh.SSHClientConnection) -> None:
    """Runs the session's program on the server until it is over."""
    asked = session.channel
    environment: dict[bytes | str, bytes | str] = {
        name: value for name, value in asked.get_environment().items() if name.startswith(_ENVIRONMENT)
    }
    program = UpstreamSession(session)
    channel, _ = await server.create_session(  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] -- generic in texts and bytes
        lambda: program,
        asked.get_command(),
        subsystem=asked.get_subsystem(),
        env=environment,
        request_pty="force" if asked.get_terminal_type() is not None else False,
        term_type=asked.get_terminal_type(),
        term_size=asked.get_terminal_size(),
        term_modes=asked.get_terminal_modes(),
        encoding=None,
    )
    session.join(program)
    await channel.wait_closed()
