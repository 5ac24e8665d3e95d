"""A disk for simulations: a SQLite database in memory that outlives the stores opened on it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

from neorion.keel.clock import Clock

_numbers = count(1)


class _Closeable(Protocol):
    def close(self) -> None: ...


class MemoryDisk:
    """Give it to `open_store` in place of a path, with an `InlineLane`.

    Between two steps of the event loop a change is on this disk whole or not at all. `crash` is kill -9: whatever
    waits is lost, whatever was acknowledged is there for the next owner.
    """

    def __init__(self) -> None:
        self.uri = f"file:/neorion-store-{next(_numbers)}?vfs=memdb"
        self.owner: _Closeable | None = None
        # A database in memory exists as long as its last connection.
        self.anchor: object = None

    def crash(self) -> None:
        if self.owner is not None:
            self.owner.close()
        self.owner = None


@dataclass(slots=True)
class LeaseRow:
    """The owner of a store, and the end of its lease by the clock of the server."""

    epoch: int = 0
    holder: str = ""
    until: float = float("-inf")


class MemoryServer:
    """A database server for simulations, as PostgreSQL is one: its lease is a row, and several processes may reach it.

    Between two steps of the event loop a transaction is committed whole or not at all.
    """

    def __init__(self, clock: Clock) -> None:
        """`clock` is that of the server."""
        self.clock = clock
        self.disk = MemoryDisk()
        self.lease = LeaseRow()

    def link(self, holder: str, reachable: Callable[[], bool] = lambda: True) -> "MemoryLink":
        """The way of one process to this server. While it is not `reachable` every statement fails."""
        return MemoryLink(self, holder, reachable)


@dataclass(frozen=True, slots=True)
class MemoryLink:
    """The way of one process to a `MemoryServer`. Give it to `open_store` in place of an address."""

    server: MemoryServer
    holder: str
    reachable: Callable[[], bool] = field(repr=False)
