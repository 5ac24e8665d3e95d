"""The PostgreSQL engine: a lease row with an epoch, checked by every transaction that writes."""

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import LiteralString, cast

import psycopg

from neorion.keel.base import Conflict, Duration, Error, Finding, Invalid, NotFound, Severity
from neorion.keel.store.dialect import for_postgres
from neorion.keel.store.engine import TransactionLost, fenced
from neorion.keel.store.migrations import HISTORY_TABLE
from neorion.keel.store.postgres_connection import Connection, connect, connect_reader, explained, unknown
from neorion.keel.store.protocols import Row, Value

OWNER_TABLE = (
    "CREATE TABLE IF NOT EXISTS store_owner (id BIGINT PRIMARY KEY, epoch BIGINT NOT NULL,"
    " holder TEXT NOT NULL, until TIMESTAMPTZ NOT NULL)"
)
# Two processes that create the table at the same moment would conflict.
ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('neorion store'))"
_STREAM_ROWS = 2_000


class PostgresReader:
    """One read-only connection."""

    def __init__(self, link: Connection) -> None:
        self._link = link

    @property
    def usable(self) -> bool:
        return not self._link.closed

    def begin(self) -> None:
        # The first query fixes the snapshot, not BEGIN.
        self._run("BEGIN")
        self._run("SELECT epoch FROM store_owner")

    def end(self) -> None:
        with suppress(psycopg.Error):
            self._link.execute("ROLLBACK")

    def execute(self, sql: str, args: Sequence[Value] = ()) -> list[Row]:
        return self._run(for_postgres(sql), args)

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        for args in rows:
            self.execute(sql, args)

    def stream(self, sql: str) -> Iterator[Row]:
        with self._link.cursor("stream") as cursor:
            cursor.itersize = _STREAM_ROWS
            cursor.execute(trusted(for_postgres(sql)))
            yield from cursor

    def findings(self) -> list[Finding]:
        """Reads every table completely, because a damaged page shows only when it is read."""
        found = list[Finding]()
        if self._run("SHOW data_checksums") == [("off",)]:
            sentence = "The server does not detect changed bytes on its disk."
            hint = "Stop it and run pg_checksums --enable."
            found.append(Finding(Severity.WARNING, "store.checksums", "server", sentence, hint))
        for (table,) in self._run(_TABLES):
            try:
                self._run(f'SELECT count(*) FROM "{table}"')  # noqa: S608 -- a name from the catalogue
            except Error as error:
                # The error ended the snapshot; one finding is enough to decide what to do.
                hint = "Restore the newest backup."
                return [*found, Finding(Severity.ERROR, "store.damaged", table, str(error), hint)]
        return found

    def close(self) -> None:
        self._link.close()

    def _run(self, sql: str, args: Sequence[Value] = ()) -> list[Row]:
        try:
            return _rows(self._link, sql, args)
        except psycopg.Error as error:
            meaning = explained(error, self._link)
            raise (meaning.error if isinstance(meaning, TransactionLost) else meaning) from error


_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename"


class PostgresEngine:
    """The writer. It reconnects by itself; the epoch decides whether it may still write."""

    def __init__(self, url: str, lease: Duration) -> None:
        self.epoch = 0
        self.lease: Duration | None = lease
        self._url = url
        self._seconds = lease.seconds
        # A process that hangs in a transaction must be cut off before its lease ends.
        self._limit = lease * 0.4
        self._holder = f"{os.uname().nodename}:{os.getpid()}"
        self._seen_until: object = None
        self._patient = False
        self._link = connect(url, self._limit)

    def applied(self) -> list[Row]:
        if self._run("SELECT current_schema()") == [(None,)]:
            raise NotFound(
                "store.schema",
                "The schema that the address names does not exist.",
                hint="Create it: CREATE SCHEMA name.",
            )
        tables = {name for (name,) in self._run(_TABLES)}
        if "store_migration" in tables:
            return self._run("SELECT number, name, checksum FROM store_migration ORDER BY number")
        if tables - {"store_owner"}:
            raise Invalid(
                "store.foreign",
                f"The schema holds tables of another program: {', '.join(sorted(tables)[:3])}.",
                hint="Use a database or schema of its own: postgresql://…/database?options=-csearch_path%3Dname.",
            )
        return []

    def claim(self) -> Duration | None:
        """Waits for the end of a lease that is not renewed; refuses a lease that is renewed, because its owner runs."""
        self._connect()
        with self._transaction():
            # A predecessor that hangs in a transaction keeps its row locked until the server ends it, within its lease.
            self._run(f"SET LOCAL statement_timeout = {round(self._seconds * 1000)}")
            self._run(ONE_AT_A_TIME)
            self._run(OWNER_TABLE)
            self._run(for_postgres(HISTORY_TABLE))
            self._run("INSERT INTO store_owner VALUES (1, 0, '', '-infinity') ON CONFLICT DO NOTHING")
            mine = self._run(
                "UPDATE store_owner SET epoch = epoch + 1, holder = %s,"
                " until = clock_timestamp() + make_interval(secs => %s)"
                " WHERE until < clock_timestamp() RETURNING epoch",
                (self._holder, self._seconds),
            )
            if mine:
                ((self.epoch,),) = mine
                return None
            ((holder, until, left),) = self._run(
                "SELECT holder, until::text, extract(epoch FROM until - clock_timestamp())::float8 FROM store_owner"
            )
        if self._seen_until not in (None, until):
            raise Conflict(
                "store.owned",
                f"The store is in use by process {holder}.",
                hint="Stop that process first, or open another store.",
            )
        self._seen_until = until
        return Duration.of(seconds=min(max(left, 0.0) + 0.01, self._seconds / 6))

    def renew(self) -> None:
        self._connect()
        if not self._run(_RENEW, (self._seconds, self.epoch)):
            raise fenced()

    def begin(self, *, patient: bool = False) -> None:
        self._connect()
        self._patient = patient
        # A shared lock: a successor waits until this transaction ends, so no write comes after the successor's claim.
        # All statements go in one round trip.
        mine = f"SELECT 1 FROM store_owner WHERE epoch = {self.epoch:d} FOR SHARE"  # noqa: S608 -- a number of our own
        try:
            answers = self._link.execute(trusted(f"BEGIN; {mine}; SAVEPOINT change"), prepare=False)
        except psycopg.Error as error:
            raise explained(error, self._link) from error
        answers.nextset()
        if not answers.fetchall():
            raise fenced()
        if patient:
            self._run("SET LOCAL statement_timeout = 0")

    def execute(self, sql: str, args: Sequence[Value] = ()) -> list[Row]:
        return self._run(for_postgres(sql), args)

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        try:
            self._link.cursor().executemany(trusted(for_postgres(sql)), rows)
        except psycopg.Error as error:
            raise explained(error, self._link) from error

    def keep(self) -> None:
        # Two commands in one round trip.
        self._run("RELEASE change; SAVEPOINT change")

    def undo(self) -> None:
        self._run("ROLLBACK TO change")

    def commit(self) -> None:
        if self._patient and not self._run(_RENEW, (self._seconds, self.epoch)):
            raise fenced()
        try:
            status = self._link.execute("COMMIT").statusmessage
        except psycopg.Error as error:
            meaning = explained(error, self._link)
            raise TransactionLost(
                unknown(error) if isinstance(meaning, TransactionLost) else meaning
            ) from error
        if status != "COMMIT":
            raise AssertionError(f"PostgreSQL answered {status} to COMMIT")

    def abandon(self) -> None:
        with suppress(psycopg.Error):
            self._link.execute("ROLLBACK")

    def tidy(self) -> None:
        """Does nothing: the server maintains itself."""

    def reader(self) -> PostgresReader:
        try:
            return PostgresReader(connect_reader(self._url))
        except TransactionLost as lost:
            raise lost.error from lost

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._link.execute("UPDATE store_owner SET until = '-infinity' WHERE epoch = %s", (self.epoch,))
        self._link.close()

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self._run("BEGIN")
        try:
            yield
            self._run("COMMIT")
        except BaseException:
            self.abandon()
            raise

    def _connect(self) -> None:
        """Reconnects if necessary. Never inside a transaction, because its first part would be lost."""
        if self._link.closed:
            self._link = connect(self._url, self._limit)

    def _run(self, sql: str, args: Sequence[Value] | None = None) -> list[Row]:
        try:
            return _rows(self._link, sql, args)
        except psycopg.Error as error:
            raise explained(error, self._link) from error


_RENEW = "UPDATE store_owner SET until = clock_timestamp() + make_interval(secs => %s) WHERE epoch = %s RETURNING epoch"


def _rows(link: Connection, sql: str, args: Sequence[Value] | None) -> list[Row]:
    # Only statements with arguments are frequent enough, and single commands, to be worth preparing.
    cursor = link.execute(trusted(sql), args, prepare=None if args else False)
    return cursor.fetchall() if cursor.description else []


def trusted(sql: str) -> LiteralString:
    # psycopg requires literals; these statements come from programs, translated.
    return cast("LiteralString", sql)
