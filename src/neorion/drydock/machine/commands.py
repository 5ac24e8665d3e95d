"""Short calls to other programs: returns their output, or raises an error with the end of it."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import PIPE
from typing import Final

import anyio

from neorion.keel.base import NotFound, Terminal

# The end of the output, which states the reason.
_LAST_CHARS: Final = 600
# Debian keeps these out of an ordinary user's PATH, and out of root's where that one came by `su`.
_ALSO: Final = ("/usr/sbin", "/sbin")


def with_sbin_path(env: Mapping[str, str]) -> dict[str, str]:
    """An environment in which also the programs for administrators are found."""
    return {**env, "PATH": os.pathsep.join([env.get("PATH", ""), *_ALSO])}


async def ask(
    argv: Sequence[str | Path], *, say: str | bytes = b"", env: Mapping[str, str] | None = None
) -> str:
    """Runs a program to its end with `say` on its standard input, and returns its standard output."""
    spoken = say.encode() if isinstance(say, str) else say
    words = [str(word) for word in argv]
    try:
        done = await anyio.run_process(
            words, input=spoken, stdout=PIPE, stderr=PIPE, check=False, env=with_sbin_path(env or os.environ)
        )
    except FileNotFoundError as error:
        raise _missing(words[0]) from error
    if done.returncode != 0:
        last = (done.stderr or done.stdout).decode(errors="replace").strip()[-_LAST_CHARS:]
        raise Terminal(
            "machine.program_failed",
            f"{words[0]} ended with {done.returncode}: {last or 'it said nothing'}",
            hint=f"The command was: {' '.join(words)[:_LAST_CHARS]}",
        )
    return done.stdout.decode(errors="replace")


def find(program: str) -> str:
    """The program's full path."""
    found = shutil.which(program, path=with_sbin_path(os.environ)["PATH"])
    if found is None:
        raise _missing(program)
    return found


def _missing(program: str) -> NotFound:
    return NotFound(
        "machine.program_missing",
        f"{program} is not on this machine.",
        hint="Install what real nodes need: make system.",
    )
