"""Progress of long work."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, NoReturn

from neorion.keel.base import Duration
from neorion.keel.cli.kit.output import Output
from neorion.keel.cli.kit.terminal import escape, is_live
from neorion.keel.clock import Clock

# Often enough to show that the work continues, rarely enough to read in a build log.
_LINE_EVERY: Final = Duration.of(seconds=5)
_BAR: Final = "{desc} {bar:20} {n_fmt}/{total_fmt} {elapsed}{postfix}"
_COUNT: Final = "{desc} {n_fmt} {elapsed}{postfix}"


class Progress:
    """Progress that is not shown."""

    def advance(self, count: int = 1, note: str = "") -> None:
        """Counts finished steps. `note` describes the current one."""


class _PlainProgress(Progress):
    """Progress as lines with a time: one at the start, one every few seconds, one at the end."""

    def __init__(self, out: Output, title: str, total: int | None, clock: Clock) -> None:
        self._out = out
        self._title = title
        self._total = total
        self._clock = clock
        self._done = 0
        self._began = self._last_line_at = clock.monotonic()
        self._print("started")

    def advance(self, count: int = 1, note: str = "") -> None:
        self._done += count
        now = self._clock.monotonic()
        if now - self._last_line_at >= _LINE_EVERY.seconds:
            self._last_line_at = now
            of = f" of {self._total}" if self._total is not None else ""
            self._print(f"{self._done}{of}{f', {note}' if note else ''}")

    def end(self, word: str) -> None:
        took = Duration.of(ms=round((self._clock.monotonic() - self._began) * 1000))
        self._print(f"{word} after {took}")

    def _print(self, words: str) -> None:
        self._out.say(f"{self._clock.now()} {self._title}: {words}")


class _LiveProgress(Progress):
    """Progress as a bar on a terminal."""

    def __init__(self, update: Callable[[int, str], None]) -> None:
        self._update = update

    def advance(self, count: int = 1, note: str = "") -> None:
        self._update(count, escape(note))


@contextmanager
def progress(out: Output, title: str, clock: Clock, total: int | None = None) -> Generator[Progress]:
    """A bar on a terminal, lines with a time elsewhere, nothing with `-q`."""
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
