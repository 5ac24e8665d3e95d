"""The interface of the store: transactions of plain SQL, and a store that runs them."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from neorion.keel.base import Finding

T = TypeVar("T")
Value = None | int | float | str | bytes
# Any, because only the author of a statement has the types of its columns.
Row = tuple[Any, ...]


class Tx(Protocol):
    """A change or query in progress. Valid while the function that received it runs."""

    def execute(self, sql: str, args: Sequence[Value] = ()) -> list[Row]:
        """Runs one statement with `?` for each argument."""
        ...

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        """Runs one statement once for each row of arguments."""
        ...


class Store(Protocol):
    """A durable store of rows with one owner at a time."""

    @property
    def epoch(self) -> int:
        """Increases with every owner. Include it in external effects, so that those of an older owner are refused."""
        ...

    async def write(self, change: Callable[[Tx], T]) -> T:
        """Applies one change: completely or not at all, in the order of the calls, durable when this returns.

        The function runs once, in another thread. If it raises, only its change is undone and the exception is raised
        here. A cancelled caller gets no outcome: the change was applied completely or not at all.
        """
        ...

    async def read(self, query: Callable[[Tx], T]) -> T:
        """Queries one snapshot of everything acknowledged so far, without waiting for writers."""
        ...

    async def backup(self, path: Path) -> None:
        """Writes a portable copy of the current state to `path`, with its manifest; writers continue meanwhile."""
        ...

    async def check(self) -> list[Finding]:
        """Reads everything and returns the damage found."""
        ...

    async def until_lost(self) -> None:
        """Waits until this owner can no longer write (another took over, or the storage failed), and raises the reason."""
        ...

    async def aclose(self) -> None:
        """Finishes waiting writes, refuses new ones, and closes the store. May be called twice."""
        ...
