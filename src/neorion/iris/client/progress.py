"""How far a map has come, told as it goes."""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from typing import Any, NoReturn

# Called with how many items are done, and how many there are.
Tell = Callable[[int, int], None]
# True draws a bar where somebody watches: in a terminal, or in a notebook.
Progress = bool | Tell


async def report_progress(
    pairs: AsyncGenerator[tuple[int, Any]], total: int, progress: Progress
) -> AsyncGenerator[tuple[int, Any]]:
    """The same pairs, counted."""
    try:
        with _teller(total, progress) as tell:
            done = 0
            async for pair in pairs:
                done += 1
                tell(done, total)
                yield pair
    finally:
        await pairs.aclose()


@contextmanager
def _teller(total: int, progress: Progress) -> Generator[Tell]:
    if callable(progress):
        yield progress
    elif progress:
        with _bar(total) as tell:
            yield tell
    else:
        yield _nobody


@contextmanager
def _bar(total: int) -> Generator[Tell]:
    # Drawn by few.
    from tqdm.auto import tqdm  # noqa: PLC0415 -- see above

    # Elsewhere than in a terminal or a notebook it draws nothing.
    bar: tqdm[NoReturn] = tqdm(desc="map", total=total, disable=None)

    def tell(done: int, _: int) -> None:
        bar.update(done - bar.n)

    with bar:
        yield tell


def _nobody(done: int, total: int) -> None:
    """Nobody watches."""
