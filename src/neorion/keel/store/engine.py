"""What a database must be able to do under a store: synchronous, called from one lane, one owner."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn, Protocol

from neorion.keel.base import Conflict, Duration, Error, Finding, Retry
from neorion.keel.store.protocols import Row, Value
from neorion.keel.telemetry import logger

log = logger(__name__)

# EX_IOERR of sysexits.h: a supervisor that knows it can tell a bad disk from a bug.
_EXIT_CODE = 74
# Space comes back when a person acts, not by the millisecond.
_FULL_AFTER = Duration.of(seconds=5)


class TransactionLost(Exception):
    """The transaction is gone with every change in it; each caller gets `error`. The store goes on."""

    def __init__(self, error: Error) -> None:
        super().__init__(error)
        self.error = error


class OwnershipLost(TransactionLost):
    """Another owner took over: this one never writes again."""


def fenced() -> OwnershipLost:
    return OwnershipLost(
        Conflict(
            "store.fenced",
            "Another owner has taken over this store.",
            hint="Stop this process; the other one goes on.",
        )
    )


def full() -> Retry:
    return Retry(
        "store.full",
        "The disk under the store is full; nothing was written.",
        hint="Free some space: the store goes on by itself.",
        after=_FULL_AFTER,
    )


class StorageFailed(Exception):
    """The storage can no longer be trusted: after a failed write or sync nobody knows what is on the disk."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(cause)
        self.cause = cause


class Statements(Protocol):
    """Runs the common SQL. Raises an `Error` for a bad statement, `TransactionLost` or `StorageFailed` for worse."""

    def execute(self, sql: str, args: Sequence[Value] = ()) -> list[Row]: ...

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None: ...


class Reader(Statements, Protocol):
    """A connection that cannot write."""

    @property
    def usable(self) -> bool:
        """Whether it may serve another time."""
        ...

    def begin(self) -> None:
        """Fixes the snapshot that all queries until `end` see."""
        ...

    def end(self) -> None: ...

    def stream(self, sql: str) -> Iterator[Row]:
        """Rows as they come, for tables larger than memory."""
        ...

    def findings(self) -> list[Finding]: ...

    def close(self) -> None: ...


class Engine(Statements, Protocol):
    """The one connection that writes."""

    epoch: int
    # How long ownership lasts unless renewed; None where the kernel ends it together with the process.
    lease: Duration | None

    def applied(self) -> list[Row]:
        """(number, name, checksum) of each migration applied so far; changes nothing."""
        ...

    def claim(self) -> Duration | None:
        """Takes ownership and the next epoch; or how long to wait before asking again."""
        ...

    def renew(self) -> None: ...

    def begin(self, *, patient: bool = False) -> None:
        """Opens a transaction, checks in it that the epoch is still ours, and sets the mark.

        A patient one (a migration) may take its time.
        """
        ...

    def keep(self) -> None:
        """Moves the mark here: what came before it stays."""
        ...

    def undo(self) -> None:
        """Goes back to the mark."""
        ...

    def commit(self) -> None:
        """Durable when it returns."""
        ...

    def abandon(self) -> None:
        """Rolls back whatever is open; never raises."""
        ...

    def tidy(self) -> None:
        """House-keeping after the acknowledgements went out."""
        ...

    def reader(self) -> Reader: ...

    def close(self) -> None: ...


def end_process(cause: BaseException) -> NoReturn:
    """Ends the process at once: a second sync after a failed one may report success for pages that are gone."""
    log.failure("storage failed, ending the process", cause)
    os._exit(_EXIT_CODE)
