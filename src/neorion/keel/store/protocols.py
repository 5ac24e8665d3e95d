"""What a user of the store sees: transactions made of plain SQL, and a store that runs them."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from neorion.keel.base import Finding

T = TypeVar("T")
Value = None | int | float | str | bytes
# Any, because the types of the columns are known to whoever wrote the statement and to nobody else.
Row = tuple[Any, ...]


class Tx(Protocol):
    """One change or one query in progress. Good for as long as the function it was given to runs."""

    def execute(self, sql: str, args: Sequence[Value] = ()) -> list[Row]:
        """One statement with `?` for each argument."""
        ...

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        """One statement, once for each row of arguments."""
        ...


class Store(Protocol):
    """Rows that outlive the process, with one owner at a time."""

    @property
    def epoch(self) -> int:
        """Grows with every owner. Put it into effects outside of the store, so that an older owner's are refused."""
        ...

    async def write(self, change: Callable[[Tx], T]) -> T:
        """Applies one change: whole or not at all, in the order of the calls, durable when this returns.

        The function runs in another thread and only once. If it raises, its change alone is undone and the exception
        arrives here. A caller that is cancelled learns nothing: the change was applied whole or not at all.
        """
        ...

    async def read(self, query: Callable[[Tx], T]) -> T:
        """Looks at one snapshot of everything acknowledged so far, without waiting for writers."""
        ...

    async def backup(self, path: Path) -> None:
        """A portable copy as of now at `path`, its manifest beside it; writers go on meanwhile."""
        ...

    async def check(self) -> list[Finding]:
        """What a doctor finds: nothing, if all is well. Reads everything."""
        ...

    async def until_lost(self) -> None:
        """Waits until this owner can write no more (another took over, or the storage failed), and raises why."""
        ...

    def check_lease(self) -> None:
        """Raises Retry from the moment when another owner may take over, until the lease is renewed again.

        Call it before an effect outside of the store. It looks at this process's own clock alone.
        """
        ...

    async def aclose(self) -> None:
        """Finishes the writes that wait, refuses new ones, and gives the store up. Safe to call twice."""
        ...
