"""Long work of a command, told while it lasts."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from neorion.keel.cli.kit import Output
from neorion.keel.cli.kit.progress import progress
from neorion.keel.clock import SystemClock
from neorion.keel.run import only_error

T = TypeVar("T")


def run(out: Output, title: str, work: Callable[[Callable[[str], None]], Awaitable[T]]) -> T:
    """`work` is given a way to tell what it does now."""
    with progress(out, title, SystemClock()) as told:

        def tell(words: str) -> None:
            told.advance(note=words)

        async def main() -> T:
            return await work(tell)

        try:
            return anyio.run(main)
        except BaseExceptionGroup as group:
            # Work that is done side by side fails side by side; a person wants to know of one error.
            raise only_error(group) from None
