"""The SQLite engine: one connection that writes and checkpoints, others that only read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

import apsw

from neorion.keel.base import Duration, Error, Finding, Retry, Severity, Terminal
from neorion.keel.store.dialect import for_sqlite
from neorion.keel.store.engine import StorageFailed, TransactionLost, fenced
from neorion.keel.store.migrations import HISTORY_TABLE
from neorion.keel.store.protocols import Row, Value
from neorion.keel.store.sqlite_connection import BUSY_AFTER, SqliteConnection, explained

OWNER_TABLE = "CREATE TABLE IF NOT EXISTS store_owner (id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL) STRICT"
# 4 MiB of journal before a checkpoint: SQLite's own default, large enough to merge rewritten pages.
CHECKPOINT_PAGES = 1_000
# 1 GiB: a reader that never ends makes the journal grow. Before it fills the disk, writes are refused as busy.
JOURNAL_PAGES_MAX = 262_144


class SqliteReader:
    """One read-only connection."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection
        self.usable = True

    def begin(self) -> None:
        # The first query fixes the snapshot, not BEGIN.
        self._run("BEGIN")
        self._run("SELECT epoch FROM store_owner")

    def end(self) -> None:
        try:
            self._connection.execute("ROLLBACK")
        except apsw.Error:
            self.usable = False

    def execute(self, sql: str, args: Sequence[Value] = ()) -> list[Row]:
        return self._run(for_sqlite(sql), args)

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        for args in rows:
            self.execute(sql, args)

    def stream(self, sql: str) -> Iterator[Row]:
        try:
            yield from self._connection.execute(for_sqlite(sql))
        except apsw.Error as error:
            raise _unreadable(error) from error

    def findings(self) -> list[Finding]:
        meaning = [str(text) for (text,) in self._run("PRAGMA integrity_check(100)")]
        found = [_finding(text) for text in meaning if text != "ok"]
        dangling = self._run("PRAGMA foreign_key_check")
        return found + [
            _finding(f"row {row[1]} of {row[0]} points at a row that is gone") for row in dangling
        ]

    def close(self) -> None:
        self._connection.close()

    def _run(self, sql: str, args: Sequence[Value] = ()) -> list[Row]:
        try:
            return self._connection.execute(sql, args).fetchall()
        except apsw.Error as error:
            raise _unreadable(error) from error


def _finding(text: str) -> Finding:
    return Finding(Severity.ERROR, "store.damaged", "database", text, hint="Restore the newest backup.")


def _unreadable(error: apsw.Error) -> Error:
    match explained(error):
        case Error() as meaning:
            return meaning
        case TransactionLost() as lost:
            return lost.error
        case _:
            return Terminal(
                "store.damaged", f"The store cannot be read: {error}.", hint="Restore the newest backup."
            )


class SqliteEngine:
    """The writer. `release` unlocks the file for another owner."""

    lease: Duration | None = None

    def __init__(
        self,
        connection: SqliteConnection,
        connect_reader: Callable[[], SqliteConnection],
        release: Callable[[], None],
    ) -> None:
        self.epoch = 0
        self._connection = connection
        self._connect_reader = connect_reader
        self._release = release
        self._journal_pages = 0
        self._checkpoint_at = CHECKPOINT_PAGES
        self._broken = False
        self._closed = False
        connection.set_wal_hook(self._journal_grew)

    def applied(self) -> list[Row]:
        if not self._connection.table_exists("main", "store_migration"):
            return []
        return self._run("SELECT number, name, checksum FROM store_migration ORDER BY number")

    def claim(self) -> Duration | None:
        self._run("BEGIN IMMEDIATE")
        self._run(OWNER_TABLE)
        self._run(for_sqlite(HISTORY_TABLE))
        self._run("INSERT INTO store_owner (id, epoch) VALUES (1, 0) ON CONFLICT DO NOTHING")
        ((self.epoch,),) = self._run("UPDATE store_owner SET epoch = epoch + 1 RETURNING epoch")
        self._run("COMMIT")
        return None

    def renew(self) -> None:
        """Does nothing: the kernel keeps the lock."""

    def begin(self, *, patient: bool = False) -> None:
        del patient  # no time limits here
        if self._journal_pages >= JOURNAL_PAGES_MAX:
            self._shrink()
        self._run("BEGIN IMMEDIATE")
        if self._run("SELECT epoch FROM store_owner") != [(self.epoch,)]:
            raise fenced()
        self._run("SAVEPOINT change")

    def execute(self, sql: str, args: Sequence[Value] = ()) -> list[Row]:
        return self._run(for_sqlite(sql), args)

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        try:
            self._connection.executemany(for_sqlite(sql), rows)
        except apsw.Error as error:
            raise self._explained(error) from error

    def keep(self) -> None:
        self._run("RELEASE change")
        self._run("SAVEPOINT change")

    def undo(self) -> None:
        self._run("ROLLBACK TO change")

    def commit(self) -> None:
        self._run("COMMIT")

    def abandon(self) -> None:
        with suppress(apsw.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def tidy(self) -> None:
        if self._journal_pages >= self._checkpoint_at:
            self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)

    def reader(self) -> SqliteReader:
        try:
            return SqliteReader(self._connect_reader())
        except apsw.Error as error:
            raise _unreadable(error) from error

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        # Closing the last connection also checkpoints, but hides a failure. After a storage failure the journal stays
        # untouched for the next owner.
        self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(self._broken))
        try:
            if not self._broken:
                self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)
        finally:
            self._connection.close()
            self._release()

    def _run(self, sql: str, args: Sequence[Value] = ()) -> list[Row]:
        try:
            return self._connection.execute(sql, args).fetchall()
        except apsw.Error as error:
            raise self._explained(error) from error

    def _explained(self, error: apsw.Error) -> Exception:
        meaning = explained(error)
        self._broken = self._broken or isinstance(meaning, StorageFailed)
        return meaning

    def _journal_grew(self, _connection: object, _name: str, pages: int) -> int:
        self._journal_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self, mode: int) -> None:
        try:
            in_journal, folded = self._connection.wal_checkpoint("main", mode)
        except apsw.Error as error:
            # Busy or full: the journal is unchanged, and the next checkpoint tries again.
            if isinstance(meaning := self._explained(error), StorageFailed):
                raise meaning from error
            in_journal, folded = self._journal_pages, 0
        # A reader with an old snapshot stops the checkpoint half-way; an immediate retry would only cost time.
        self._checkpoint_at = CHECKPOINT_PAGES if in_journal == folded else in_journal + CHECKPOINT_PAGES
        self._journal_pages = 0 if in_journal == folded else in_journal

    def _shrink(self) -> None:
        self._checkpoint(apsw.SQLITE_CHECKPOINT_RESTART)
        if self._journal_pages >= JOURNAL_PAGES_MAX:
            raise TransactionLost(
                Retry(
                    "store.busy",
                    "A long read keeps the journal from shrinking, and it has reached its limit.",
                    hint="Wait for the backup or query to end.",
                    after=BUSY_AFTER,
                )
            )
