"""Progress reports of a map."""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from typing import Any, NoReturn

# Called with the number of completed items and the total.
ProgressCallback = Callable[[int, int], None]
# True draws a bar in a terminal or in a notebook.
Progress = bool | ProgressCallback


async def report_progress(
    pairs: AsyncGenerator[tuple[int, Any]], total: int, progress: Progress
) -> AsyncGenerator[tuple[int, Any]]:
    """Yields the same pairs and reports how many there were."""
    try:
        with _callback(total, progress) as report:
            done = 0
            async for pair in pairs:
                done += 1
                report(done, total)
                yield pair
    finally:
        await pairs.aclose()


@contextmanager
def _callback(total: int, progress: Progress) -> Generator[ProgressCallback]:
    if callable(progress):
        yield progress
    elif progress:
        with _bar(total) as report:
            yield report
    else:
        yield _ignore


@contextmanager
def _bar(total: int) -> Generator[ProgressCallback]:
    # Most programs draw no bar.
    from tqdm.auto import tqdm  # noqa: PLC0415 -- loaded when needed

    # It draws nothing outside of a terminal or a notebook.
    bar: tqdm[NoReturn] = tqdm(desc="map", total=total, disable=None)

    def report(done: int, _: int) -> None:
        bar.update(done - bar.n)

    with bar:
        yield report


def _ignore(done: int, total: int) -> None:
    """Does nothing."""
