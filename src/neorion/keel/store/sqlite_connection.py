"""Connections to SQLite: the calls that the store uses, and the meaning of their errors."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import apsw

from neorion.keel.base import Conflict, Duration, Retry, Terminal
from neorion.keel.store.engine import StorageFailed, TransactionLost, fenced, full
from neorion.keel.store.protocols import Row, Value

BUSY_AFTER = Duration.of(ms=500)
_STATEMENTS = 256  # prepared ones kept by each connection
# Faults of a statement; the database itself is intact.
_STATEMENT_FAULTS = (
    apsw.SQLError, apsw.MismatchError, apsw.RangeError, apsw.TooBigError, apsw.BindingsError, apsw.ReadOnlyError,
    apsw.AuthError, apsw.MisuseError, apsw.IncompleteExecutionError,
)  # fmt: skip


class Cursor(Protocol):
    """The rows of a result."""

    def fetchall(self) -> list[Row]: ...

    def __iter__(self) -> Iterator[Row]: ...


class SqliteConnection(Protocol):
    """The part of apsw that the store uses, because apsw's own types need a newer Python."""

    in_transaction: bool

    def execute(self, sql: str, args: Sequence[Value] = ..., /) -> Cursor: ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Value]], /) -> Cursor: ...

    def pragma(self, name: str, value: str | int = ..., /) -> Any: ...  # noqa: ANN401 -- depends on the pragma

    def config(self, op: int, *args: int) -> int: ...

    def set_busy_timeout(self, milliseconds: int, /) -> None: ...

    def set_wal_hook(self, hook: Callable[[Any, str, int], int], /) -> None: ...

    def table_exists(self, database: str, table: str, /) -> bool: ...

    def wal_autocheckpoint(self, pages: int, /) -> None: ...

    def wal_checkpoint(self, database: str, mode: int, /) -> tuple[int, int]: ...

    def close(self) -> None: ...


def connect(uri: str | Path, *, read_only: bool = False) -> SqliteConnection:
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    # A path is not a URI: it may contain ? or %.
    flags |= 0 if isinstance(uri, Path) else apsw.SQLITE_OPEN_URI
    return cast("SqliteConnection", apsw.Connection(str(uri), flags=flags, statementcachesize=_STATEMENTS))


def explained(error: apsw.Error) -> Exception:
    """Translates a failed call into the error of its transaction: an `Error`, `TransactionLost`, or `StorageFailed`."""
    if _is_full(error):
        return TransactionLost(full())
    if isinstance(error, _STATEMENT_FAULTS) or _code(error) == apsw.SQLITE_CONSTRAINT_DATATYPE:
        return Terminal("store.sql", f"The statement was refused: {error}.")
    match error:
        case apsw.ConstraintError():
            return Conflict("store.constraint", f"The change breaks a rule of its tables: {error}.")
        case apsw.BusyError() | apsw.LockedError():
            return TransactionLost(
                Retry(
                    "store.busy",
                    "Another program holds a lock on the store's file.",
                    hint="Close other programs that opened it, such as a sqlite3 shell.",
                    after=BUSY_AFTER,
                )
            )
        case apsw.ConnectionClosedError():
            # The memory disk of a simulated crash: its old owner may not continue.
            return fenced()
        case _:
            return StorageFailed(error)


def _code(error: apsw.Error) -> int:
    return getattr(error, "extendedresult", 0)


def _is_full(error: apsw.Error) -> bool:
    # The index of the journal is extended before anything is written; if space is lacking, that is a separate I/O
    # error. If a sync reports a lack of space, written pages may be lost.
    return isinstance(error, apsw.FullError) or _code(error) == apsw.SQLITE_IOERR_SHMSIZE
