"""Long work, told while it lasts."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from neorion.keel.base import Duration
from neorion.keel.cli.kit.output import Output
from neorion.keel.cli.kit.terminal import escape, is_live
from neorion.keel.clock import Clock

# Enough to see that it lives, few enough to read in a build log.
_LINE_EVERY: Final = Duration.of(seconds=5)


class Progress:
    """Work that counts its steps; this one tells nobody."""

    def advance(self, count: int = 1, note: str = "") -> None:
        """`note` says what is being done now."""


class _Lines(Progress):
    """Dated lines: one at the start, one every few seconds, one at the end."""

    def __init__(self, out: Output, title: str, total: int | None, clock: Clock) -> None:
        self._out = out
        self._title = title
        self._total = total
        self._clock = clock
        self._done = 0
        self._began = self._told = clock.monotonic()
        self._tell("started")

    def advance(self, count: int = 1, note: str = "") -> None:
        self._done += count
        now = self._clock.monotonic()
        if now - self._told >= _LINE_EVERY.seconds:
            self._told = now
            of = f" of {self._total}" if self._total is not None else ""
            self._tell(f"{self._done}{of}{f', {note}' if note else ''}")

    def end(self, word: str) -> None:
        took = Duration.of(ms=round((self._clock.monotonic() - self._began) * 1000))
        self._tell(f"{word} after {took}")

    def _tell(self, words: str) -> None:
        self._out.say(f"{self._clock.now()} {self._title}: {words}")


class _Live(Progress):
    """A bar on a terminal."""

    def __init__(self, update: Callable[[int, str], None]) -> None:
        self._update = update

    def advance(self, count: int = 1, note: str = "") -> None:
        self._update(count, escape(note))


@contextmanager
def progress(out: Output, title: str, clock: Clock, total: int | None = None) -> Generator[Progress]:
    """Live on a terminal, dated lines elsewhere, nothing with `-q`."""
    if out.shared.quiet:
        yield Progress()
    elif is_live(out.err.stream, out.env):
        with _live(out, title, total) as live:
            yield live
    else:
        lines = _Lines(out, title, total, clock)
        try:
            yield lines
        except BaseException:
            lines.end("failed")
            raise
        lines.end("done")


@contextmanager
def _live(out: Output, title: str, total: int | None) -> Generator[Progress]:
    # Only a terminal needs rich, and it costs as much as all the rest.
    from rich.console import Console  # noqa: PLC0415 -- see above
    from rich.progress import (  # noqa: PLC0415 -- see above
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.progress import Progress as Bar  # noqa: PLC0415 -- see above

    with Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=Console(file=out.err.stream, no_color=not out.err.color, highlight=False),
        transient=True,
    ) as bar:
        task = bar.add_task(escape(title), total=total, note="")
        yield _Live(lambda count, note: bar.update(task, advance=count, note=note))
