"""A disk for simulations: a SQLite database in memory that outlives the stores opened on it."""

from itertools import count
from typing import Protocol

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
