"""The port of a database engine under a store: synchronous, called from one executor, with one owner."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn, Protocol

from neorion.keel.base import Conflict, Duration, Error, Finding, Retry
from neorion.keel.store.protocols import Row, Value
from neorion.keel.telemetry import logger

log = logger(__name__)

# EX_IOERR of sysexits.h, by which a supervisor distinguishes a bad disk from a bug.
_EXIT_CODE = 74
# Space is freed by a person, so short waits are useless.
_FULL_AFTER = Duration.of(seconds=5)


class TransactionLost(Exception):
    """The transaction was lost with all its changes; each caller gets `error`. The store continues."""

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
        hint="Free some space; the store then continues by itself.",
        after=_FULL_AFTER,
    )


class StorageFailed(Exception):
    """A write or sync has failed, so the content of the disk is unknown and the storage cannot be trusted."""

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
        """True if the reader can be used again."""
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
    # The duration of ownership without renewal; None where the kernel ends it with the process.
    lease: Duration | None

    def applied(self) -> list[Row]:
        """(number, name, checksum) of each migration applied so far; changes nothing."""
        ...

    def claim(self) -> Duration | None:
        """Takes ownership and the next epoch; or returns the wait before the next attempt."""
        ...

    def renew(self) -> None: ...

    def begin(self, *, patient: bool = False) -> None:
        """Opens a transaction, verifies in it that the epoch is unchanged, and sets the savepoint.

        A patient one (a migration) has no time limit.
        """
        ...

    def keep(self) -> None:
        """Moves the savepoint here: earlier changes stay."""
        ...

    def undo(self) -> None:
        """Rolls back to the savepoint."""
        ...

    def commit(self) -> None:
        """Commits; durable when it returns."""
        ...

    def abandon(self) -> None:
        """Rolls back any open transaction; never raises."""
        ...

    def tidy(self) -> None:
        """Maintenance after the acknowledgements were sent."""
        ...

    def reader(self) -> Reader: ...

    def close(self) -> None: ...


def end_process(cause: BaseException) -> NoReturn:
    """Ends the process at once: a second sync after a failed one may report success for pages that are gone."""
    log.failure("storage failed, ending the process", cause)
    os._exit(_EXIT_CODE)
