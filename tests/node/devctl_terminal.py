"""A person at a terminal: types, reads, resizes the window. The program sees a real pseudo-terminal."""

import fcntl
import os
import pty
import select
import struct
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from neorion.keel.clock import SystemClock

# What does not come within this long does not come.
PATIENCE_S = 120.0
# To be typed. It says that it has begun itself: a shell that says so is still its terminal's foreground,
# and takes a Ctrl-C that comes before its next child is.
LONG_WORK = """sh -c 'echo be""gun; exec sleep 1000'\n"""


@dataclass
class Person:
    """`read` is everything on the screen that nobody has waited for yet."""

    pid: int
    terminal: int
    read: bytes = field(default=b"")

    @classmethod
    def start(cls, command: Sequence[str], env: Mapping[str, str]) -> "Person":
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(command[0], list(command), dict(env))  # noqa: S606 -- the command is the test's own
        return cls(pid, terminal)

    def resize(self, rows: int, columns: int) -> None:
        """The kernel tells the program."""
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        os.write(self.terminal, keys.encode())

    def see(self, words: str) -> str:
        """What appeared up to these words."""
        end = SystemClock().monotonic() + PATIENCE_S
        while words.encode() not in self.read:
            more = self._more(end, f"{words!r} did not appear")
            if not more:
                raise AssertionError(f"the program ended; the screen shows {self.read!r}")
            self.read += more
        before, _, self.read = self.read.partition(words.encode())
        return before.decode(errors="replace") + words

    def has_echo(self) -> bool:
        """Whether the terminal shows what is typed, as it does for every shell, and not for us while we carry."""
        return bool(termios.tcgetattr(self.terminal)[3] & termios.ECHO)

    def exit_code(self) -> int:
        end = SystemClock().monotonic() + PATIENCE_S
        while more := self._more(end, "the program did not end"):
            self.read += more
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)

    def _more(self, end: float, complaint: str) -> bytes:
        """What is new on the screen; nothing once the program has ended."""
        ready, _, _ = select.select([self.terminal], [], [], max(0.0, end - SystemClock().monotonic()))
        if not ready:
            raise AssertionError(f"{complaint}; the screen shows {self.read!r}")
        try:
            return os.read(self.terminal, 4096)
        except OSError:
            # How Linux says that nobody is at the other side.
            return b""
