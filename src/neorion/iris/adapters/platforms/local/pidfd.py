"""One process by its descriptor: a number that came to mean another process does not deceive us."""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import anyio

from neorion.iris.adapters.platforms.local.slice_store import ProcessIdentity

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    return _BOOT_ID.read_text().strip()


def stat_of(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the third on, which is the state; None if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second is a name in parentheses that may hold anything.
    return text.rpartition(")")[2].split()


def ticks_of(pid: int) -> int | None:
    """When a process started; None if it is gone or only waits to be reaped."""
    stat = stat_of(pid)
    return int(stat[19]) if stat is not None and stat[0] not in "ZX" else None


class PidfdProcess:
    """A process that lived when this was made, a child of ours or not."""

    def __init__(self, birth: ProcessIdentity, descriptor: int) -> None:
        self.birth = birth
        self._descriptor = descriptor
        self._end: str | None = None

    @classmethod
    def find(cls, birth: ProcessIdentity) -> Self | None:
        """The process of this birth, if it still lives."""
        if birth.boot != boot_id():
            return None
        try:
            descriptor = os.pidfd_open(birth.pid)
        except OSError:
            return None
        # Read after the descriptor is held: if this is our process, then the descriptor is of it too.
        if ticks_of(birth.pid) != birth.ticks:
            os.close(descriptor)
            return None
        return cls(birth, descriptor)

    @property
    def alive(self) -> bool:
        return self._end is None

    def signal(self, number: signal.Signals) -> None:
        if self.alive:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, number)

    async def ended(self) -> str:
        """Waits for the exit and describes it as far as it is known. One caller at a time."""
        while self._end is None:
            await anyio.wait_readable(self._descriptor)
            self._end = self._reap()
            os.close(self._descriptor)
        return self._end

    def close(self) -> None:
        """Stops watching; the process goes on."""
        if self.alive:
            os.close(self._descriptor)

    def _reap(self) -> str:
        try:
            end = os.waitid(os.P_PIDFD, self._descriptor, os.WEXITED)
        except ChildProcessError:
            # Begun by an earlier controller: only its parent learns how it ended.
            end = None
        if end is None:
            return "ended"
        if end.si_code == os.CLD_EXITED:
            return f"exited with {end.si_status}"
        return f"was ended by {signal.Signals(end.si_status).name}"


class GatedProcess:
    """A process that was started and waits at its standard input until it is let go."""

    def __init__(self, process: PidfdProcess, gate: int) -> None:
        self.process = process
        self._gate = gate

    def release(self, token: str) -> None:
        """Gives it the token. Fits into the pipe, so this never waits."""
        with suppress(BrokenPipeError):
            os.write(self._gate, token.encode())
        os.close(self._gate)

    def abandon(self) -> None:
        os.close(self._gate)
        self.process.signal(signal.SIGKILL)


def spawn(argv: Sequence[str], variables: Mapping[str, str], output: Path) -> GatedProcess:
    """Starts a process in a session of its own, held at its standard input. Raises OSError.

    If we die before it is released it reads an end without a token, so nothing runs that no record knows of.
    """
    reader, gate = os.pipe()
    try:
        pid = os.posix_spawnp(
            argv[0],
            list(argv),
            variables,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, reader, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
    except OSError:
        os.close(gate)
        raise
    finally:
        os.close(reader)
    # Our child cannot be recycled before we reap it, however soon it ended.
    stat = stat_of(pid) or []
    return GatedProcess(
        PidfdProcess(ProcessIdentity(pid, int(stat[19]), boot_id()), os.pidfd_open(pid)), gate
    )
