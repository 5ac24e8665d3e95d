"""Runs the long work of a command and shows its progress."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from neorion.keel.cli.kit import Output
from neorion.keel.cli.kit.progress import progress
from neorion.keel.clock import SystemClock
from neorion.keel.run import only_error

T = TypeVar("T")


def run(out: Output, title: str, work: Callable[[Callable[[str], None]], Awaitable[T]]) -> T:
    """Runs `work` with a function that reports its current step."""
    with progress(out, title, SystemClock()) as bar:

        def tell(words: str) -> None:
            bar.advance(note=words)

        async def main() -> T:
            return await work(tell)

        try:
            return anyio.run(main)
        except BaseExceptionGroup as group:
            # Parallel work fails in groups; one error is shown.
            raise only_error(group) from None
