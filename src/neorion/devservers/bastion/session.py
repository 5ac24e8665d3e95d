"""A session of a client: a shell, a command or a subsystem, in a server or in the user's console."""

from typing import Final

import asyncssh

from neorion.devservers.bastion.connection import Connection
from neorion.devservers.bastion.upstream import Upstream
from neorion.devservers.model.audit import AuditEvent
from neorion.keel.base import Error
from neorion.keel.telemetry import logger

log = logger(__name__)

# As ssh itself when it cannot connect: no program of a server is told apart by it.
_FAILED: Final = 255
_ENVIRONMENT: Final = ("LANG", "LC_")


async def serve_session(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """Runs until the session is over, and gives the client its exit code."""
    connection = process.channel.get_connection().get_owner()
    if not isinstance(connection, Connection):
        raise TypeError(f"{connection} is not a connection of the bastion")
    context, who = connection.context, connection.who
    command = process.command or process.subsystem or ""
    if not connection.take_channel():
        context.record(AuditEvent.REFUSED, who, command=command, reason="too many channels of this user")
        _say(process, "You have too many channels open.")
        process.exit(_FAILED)
        return
    terminal = process.term_type is not None
    code: int | None = _FAILED
    try:
        context.record(AuditEvent.SESSION, who, command=command, terminal=terminal)
        if connection.upstream is not None:
            code = await _in_server(process, connection.upstream)
        else:
            code = await _without_server(process, connection)
    except Error as error:
        _say(process, error.sentence, error.hint)
    except (asyncssh.Error, OSError) as error:
        _say(process, f"The session failed: {error}.")
    finally:
        connection.give_back_channel()
        context.record(AuditEvent.SESSION_END, who, command=command, exit_code=code)
    if code is not None and not process.channel.is_closing():
        process.exit(code)


async def _in_server(process: asyncssh.SSHServerProcess[bytes], upstream: Upstream) -> int | None:
    """The server's own sshd runs it. Sizes, signals and both outputs pass through. None where a signal ended it."""
    server = await upstream.connection(lambda line: _say(process, line))
    inside = await server.create_process(
        command=process.command,
        subsystem=process.subsystem,
        env={name: value for name, value in process.env.items() if name.startswith(_ENVIRONMENT)},
        term_type=process.term_type,
        term_size=process.term_size,
        term_modes=process.term_modes,
        encoding=None,
        stdin=process.stdin,
        stdout=process.stdout,
        stderr=process.stderr,
    )
    async with inside:
        await inside.wait_closed()
    if inside.exit_signal is not None and not process.channel.is_closing():
        name, dumped, message, language = inside.exit_signal
        process.exit_with_signal(name, dumped, message, language)
        return None
    return _FAILED if inside.exit_status is None else inside.exit_status


async def _without_server(process: asyncssh.SSHServerProcess[bytes], connection: Connection) -> int:
    consoles = connection.context.consoles
    if consoles is None:
        user = connection.login.user
        _say(
            process,
            f"You are logged in as {user}. This bastion has no consoles.",
            f"Name one of your servers: ssh {user}+SERVER@HOST, or ssh -J {user}@HOST dev@SERVER.",
        )
        return 0 if process.command is None and process.subsystem is None else 1
    from neorion.devservers.bastion.console import run_in_console  # noqa: PLC0415 -- written beside it

    return await run_in_console(process, consoles, connection.login.user)


def _say(process: asyncssh.SSHServerProcess[bytes], *lines: str) -> None:
    """To the client's stderr; a terminal in raw mode needs the carriage return."""
    if process.channel.is_closing():
        return
    for line in filter(None, lines):
        process.stderr.write(f"{line}\r\n".encode())
