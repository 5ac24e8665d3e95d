"""Joins a session to a program in the user's console."""

from typing import Final

import anyio
import asyncssh

from neorion.devservers.bastion.upstream import PIECE
from neorion.devservers.ports import ConsoleCommand, ConsoleProcess, Consoles
from neorion.keel.base import Invalid

_FAILED: Final = 255


async def run_in_console(process: asyncssh.SSHServerProcess[bytes], consoles: Consoles, user: str) -> int:
    """Until the program ends: its exit code. Sizes of the terminal pass through; its own keys send the signals."""
    if process.subsystem is not None:
        raise Invalid(
            "devservers.console_subsystem",
            f"A console has no {process.subsystem}.",
            hint=f"Copy files to a server: sftp {user}+SERVER@HOST",
        )
    terminal = process.term_type is not None
    command = ConsoleCommand(user, process.command, terminal, process.term_type or "")

    def tell(line: str) -> None:
        process.stderr.write(f"{line}\r\n".encode())

    async with consoles.run(command, tell) as program, anyio.create_task_group() as group:
        if terminal:
            columns, rows, _, _ = process.term_size
            await program.resize(columns, rows)
        group.start_soon(_send, process, program)
        async for is_error, data in program.read():
            out = process.stderr if is_error else process.stdout
            out.write(data)
            await out.drain()
        group.cancel_scope.cancel()
    return _FAILED if program.code is None else program.code


async def _send(process: asyncssh.SSHServerProcess[bytes], program: ConsoleProcess) -> None:
    while True:
        try:
            data = await process.stdin.read(PIECE)
        except asyncssh.TerminalSizeChanged as changed:
            await program.resize(changed.width, changed.height)
        except (asyncssh.BreakReceived, asyncssh.SignalReceived):
            # A program without a terminal cannot be signalled through the API server; it goes with the session.
            continue
        else:
            if not data:
                await program.close_stdin()
                return
            await program.write(data)
