"""The user's terminal, lent to a command in a server and always given back as it was."""

import contextlib
import os
import signal
import sys
import termios
import tty
from collections.abc import Generator

import anyio

from neorion.keel.base import Deadline
from neorion.keel.kube.streams import ExecSession, OutputStream, TerminalSize

_PIECE = 64 * 1024


def has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


async def carry(process: ExecSession) -> None:
    """Input, output and errors, each its own way, until the command ends."""
    sys.stdout.flush()
    targets = {OutputStream.STDOUT: sys.stdout.fileno(), OutputStream.STDERR: sys.stderr.fileno()}
    async with anyio.create_task_group() as group:
        group.start_soon(_send_input, process, sys.stdin.fileno())
        async for output in process:
            await write_all(targets[output.stream], output.data)
        group.cancel_scope.cancel()


async def carry_terminal(process: ExecSession) -> None:
    """Every key goes to the command, Ctrl-C and Ctrl-D too; so does the window's size whenever it changes."""
    keyboard, screen = sys.stdin.fileno(), sys.stdout.fileno()
    sys.stdout.flush()
    with raw(keyboard):
        async with anyio.create_task_group() as group:
            await process.resize(_size(screen))
            group.start_soon(_heed_signals, process, screen, group.cancel_scope)
            group.start_soon(_send_input, process, keyboard)
            async for output in process:
                await write_all(screen, output.data)
            group.cancel_scope.cancel()


@contextlib.contextmanager
def raw(keyboard: int) -> Generator[None]:
    """Keys as they are typed. Whatever ends the block, the terminal is as it was before."""
    before = termios.tcgetattr(keyboard)
    tty.setraw(keyboard)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


async def write_all(target: int, data: bytes) -> None:
    """A terminal shared with a program that made it non-blocking takes what it can."""
    while data:
        try:
            data = data[os.write(target, data) :]
        except BlockingIOError:
            await anyio.wait_writable(target)


async def _send_input(process: ExecSession, source: int) -> None:
    while True:
        # A file cannot be waited for, and need not: reading it does not block.
        with contextlib.suppress(PermissionError):
            await anyio.wait_readable(source)
        try:
            piece = os.read(source, _PIECE)
        except BlockingIOError:
            continue
        except OSError:
            # How Linux says that a terminal is gone.
            piece = b""
        try:
            if not piece:
                await process.close_stdin()
                return
            await process.write(piece)
        except Deadline:
            # The command has ended without reading the rest; how it ended is told by its output.
            return


async def _heed_signals(process: ExecSession, screen: int, scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGWINCH, signal.SIGTERM, signal.SIGHUP) as signals:
        async for received in signals:
            if received is not signal.SIGWINCH:
                process.code = 128 + received
                scope.cancel()
                return
            await process.resize(_size(screen))


def _size(screen: int) -> TerminalSize:
    columns, rows = os.get_terminal_size(screen)
    return TerminalSize(columns, rows)
