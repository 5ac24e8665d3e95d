"""How a test calls the command line, and what came of it."""

import subprocess
import sys
from dataclasses import dataclass
from typing import Protocol

PROGRAM = [sys.executable, "-c", "from neorion.iris.cli import main; main()"]


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


class Iris(Protocol):
    """Calls it in this process."""

    def __call__(self, *args: str) -> Done: ...


class Start(Protocol):
    """Starts it as a process of its own."""

    def __call__(self, *args: str) -> "subprocess.Popen[str]": ...
