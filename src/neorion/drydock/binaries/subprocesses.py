"""Runs other programs; the end of their output becomes the error."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final

import anyio
from anyio.abc import ByteReceiveStream
from anyio.streams.text import TextReceiveStream

from neorion.keel.base import Terminal

Tell = Callable[[str], None]

# The part of a compiler's output that an error shows.
_TAIL_LINES: Final = 15


def ignore_progress(words: str) -> None:
    """Ignores progress: the default of `tell`."""


async def run(
    argv: Sequence[str], env: Mapping[str, str] | None = None, tell: Tell = ignore_progress
) -> None:
    """Runs a program to its end; calls `tell` with each line of its standard error."""
    last: list[str] = []
    async with await anyio.open_process(argv, stdin=-3, stdout=-3, stderr=-1, env=env) as process:
        assert process.stderr is not None  # noqa: S101 -- a pipe by default
        async for line in _lines(process.stderr):
            last = [*last[1 - _TAIL_LINES :], line]
            tell(line)
    if process.returncode != 0:
        raise Terminal(
            "drydock.program_failed",
            f"{argv[0]} ended with {process.returncode}: {' / '.join(last) or 'it printed nothing'}",
            hint="The command was: " + " ".join(argv),
        )


async def _lines(stream: ByteReceiveStream) -> AsyncIterator[str]:
    rest = ""
    async for text in TextReceiveStream(stream, errors="replace"):
        *whole, rest = (rest + text).split("\n")
        for line in whole:
            yield line
    if rest:
        yield rest
