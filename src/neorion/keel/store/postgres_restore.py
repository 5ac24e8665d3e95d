"""Restores a backup into PostgreSQL, in one transaction."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql

from neorion.keel.base import Conflict, Duration
from neorion.keel.store import sqlite_connection
from neorion.keel.store.backup import Manifest, columns_of, tables_of
from neorion.keel.store.dialect import for_postgres, statements
from neorion.keel.store.engine import TransactionLost
from neorion.keel.store.migrations import HISTORY_TABLE, Migration
from neorion.keel.store.postgres import ONE_AT_A_TIME, OWNER_TABLE, trusted
from neorion.keel.store.postgres_connection import Connection, connect, explained
from neorion.keel.store.sqlite_restore import EPOCH_LEAP, not_empty, verified

# A restore may take any time, and no owner exists whose lease it could outlast.
_NO_LIMIT = Duration(0)


def restore_postgres(backup: Path, url: str, known: Sequence[Migration], *, replace: bool) -> None:
    with verified(backup, known) as (content, manifest):
        link = connect(url, _NO_LIMIT)
        try:
            with link.transaction():
                link.execute(ONE_AT_A_TIME)
                epoch = _clear(link, replace=replace)
                _build(link, known[: manifest.schema])
                _fill(link, content, manifest)
                link.execute("UPDATE store_owner SET epoch = %s", (max(epoch, manifest.epoch) + EPOCH_LEAP,))
        except psycopg.Error as error:
            meaning = explained(error, link)
            raise (meaning.error if isinstance(meaning, TransactionLost) else meaning) from error
        finally:
            link.close()


def _clear(link: Connection, *, replace: bool) -> int:
    """Empties the schema by renaming it; returns the epoch that it had reached."""
    tables = {
        name
        for (name,) in link.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
    }
    if not tables:
        return 0
    epoch = _retire(link) if "store_owner" in tables else 0
    if not replace:
        raise not_empty("The PostgreSQL schema")
    ((schema,),) = link.execute("SELECT current_schema()")
    taken = {name for (name,) in link.execute("SELECT nspname FROM pg_namespace")}
    aside = next(name for n in count(1) if (name := f"{schema}_replaced_{n}") not in taken)
    old, new = sql.Identifier(schema), sql.Identifier(aside)
    link.execute(sql.SQL("ALTER SCHEMA {} RENAME TO {}").format(old, new))
    link.execute(sql.SQL("CREATE SCHEMA {}").format(old))
    return epoch


def _retire(link: Connection) -> int:
    """Ends the old store's last epoch; fails if its owner is running."""
    ended = link.execute(
        "UPDATE store_owner SET epoch = epoch + 1 WHERE until < clock_timestamp() RETURNING epoch"
    ).fetchone()
    if ended is None:
        raise Conflict(
            "store.owned",
            "The store is in use.",
            hint="Stop its owner; if it crashed, wait a few seconds for its lease to end.",
        )
    return int(ended[0])


def _build(link: Connection, steps: Sequence[Migration]) -> None:
    link.execute(OWNER_TABLE)
    for statement in (HISTORY_TABLE, *(one for step in steps for one in statements(step.sql))):
        link.execute(trusted(for_postgres(statement)), ())


def _fill(link: Connection, content: sqlite_connection.SqliteConnection, manifest: Manifest) -> None:
    # References are checked once at the end, so that tables and rows may come in any order.
    references = link.execute(
        "SELECT conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE contype = 'f' AND connamespace = current_schema()::regnamespace"
    ).fetchall()
    for table, name, _ in references:
        link.execute(trusted(f"ALTER TABLE {table} DROP CONSTRAINT {name}"))
    for table in tables_of(content):
        count_in = _copy_table(link, content, table)
        if count_in != manifest.rows.get(table):
            raise AssertionError(f"{table}: {count_in} rows of {manifest.rows.get(table)}")
    for table, name, definition in references:
        link.execute(trusted(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}"))


def _copy_table(link: Connection, content: sqlite_connection.SqliteConnection, table: str) -> int:
    columns = columns_of(content, table)
    into, names = sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
    # Migrations may insert rows; those of the backup count.
    link.execute(sql.SQL("DELETE FROM {}").format(into))
    if table == "store_owner":
        link.execute("INSERT INTO store_owner VALUES (1, 0, '', '-infinity')")
        return 1
    quoted = ", ".join(f'"{column}"' for column in columns)
    rows = 0
    with link.cursor().copy(sql.SQL("COPY {} ({}) FROM STDIN").format(into, names)) as copy:
        for row in content.execute(f'SELECT {quoted} FROM "{table}"'):  # noqa: S608 -- names of our own schema
            copy.write_row(row)
            rows += 1
    return rows
