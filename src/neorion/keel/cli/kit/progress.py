"""Long work, told while it lasts."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, NoReturn

from neorion.keel.base import Duration
from neorion.keel.cli.kit.output import Output
from neorion.keel.cli.kit.terminal import escape, is_live
from neorion.keel.clock import Clock

# Enough to see that it lives, few enough to read in a build log.
_LINE_EVERY: Final = Duration.of(seconds=5)
_BAR: Final = "{desc} {bar:20} {n_fmt}/{total_fmt} {elapsed}{postfix}"
_COUNT: Final = "{desc} {n_fmt} {elapsed}{postfix}"


class Progress:
    """Work that counts its steps; this one tells nobody."""

    def advance(self, count: int = 1, note: str = "") -> None:
        """`note` says what is being done now."""


class _PlainProgress(Progress):
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


class _LiveProgress(Progress):
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
        lines = _PlainProgress(out, title, total, clock)
        try:
            yield lines
        except BaseException:
            lines.end("failed")
            raise
        lines.end("done")


@contextmanager
def _live(out: Output, title: str, total: int | None) -> Generator[Progress]:
    # Only a terminal needs it.
    from tqdm import tqdm  # noqa: PLC0415 -- see above

    bar: tqdm[NoReturn] = tqdm(
        desc=escape(title),
        total=total,
        file=out.err.stream,
        leave=False,
        dynamic_ncols=True,
        bar_format=_BAR if total else _COUNT,
    )
    with bar:

        def update(count: int, note: str) -> None:
            bar.set_postfix_str(note, refresh=False)
            bar.update(count)
            bar.refresh()

        yield _LiveProgress(update)
