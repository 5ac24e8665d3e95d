"""Opens SQLite databases for the store, and refuses every one that could not keep the store's promises."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import apsw

from neorion.keel.base import Conflict, Invalid, Terminal
from neorion.keel.store.engine import StorageFailed
from neorion.keel.store.files import explaining, own, suitable, sync
from neorion.keel.store.memory import MemoryDisk
from neorion.keel.store.sqlite import CHECKPOINT_PAGES, SqliteEngine
from neorion.keel.store.sqlite_connection import SqliteConnection, connect, explained

# "NEOR": marks the file as ours.
APPLICATION_ID = 0x4E454F52
# Older ones can lose committed pages when a journal restarts beside a checkpoint (3.7.0 to 3.51.2).
_ENGINE_MIN = (3, 51, 3)
_HEADER = b"SQLite format 3\0"
_PAGE = 4096
# Only a foreign program can hold a lock; a person in a shell deserves a moment, callers must not wait for long.
_BUSY_MS = 2_000


def open_file(path: Path) -> SqliteEngine:
    _refuse_old_engine(apsw.sqlite_lib_version())
    with explaining(path):
        path = suitable(path)
        release = own(path)
    try:
        with explaining(path):
            _create_or_recognise(path)
        connection = _guarded(partial(_connect_writer, path))
    except BaseException:
        release()
        raise
    return SqliteEngine(connection, partial(connect_reader, path), release)


def open_memory(disk: MemoryDisk) -> SqliteEngine:
    if disk.owner is not None:
        raise Conflict(
            "store.owned", "The store in memory is in use.", hint="Close it, or let its owner crash()."
        )
    disk.anchor = disk.anchor or connect(disk.uri)
    connection = _prepared(connect(disk.uri))
    connection.pragma("application_id", APPLICATION_ID)

    def release() -> None:
        # An owner that crashed may close long after the next one began.
        if disk.owner is engine:
            disk.owner = None

    disk.owner = engine = SqliteEngine(connection, partial(connect_reader, disk.uri), release)
    return engine


def connect_reader(uri: str | Path) -> SqliteConnection:
    connection = connect(uri, read_only=True)
    connection.wal_autocheckpoint(0)
    connection.pragma("query_only", 1)
    return _prepared(connection)


def _refuse_old_engine(version: str) -> None:
    if tuple(int(part) for part in version.split(".")[:3]) < _ENGINE_MIN:
        raise Terminal(
            "store.engine",
            f"SQLite {version} can lose committed data; at least {'.'.join(map(str, _ENGINE_MIN))} is needed.",
            hint="Run: pip install --upgrade 'neorion[server]'.",
        )


def _create_or_recognise(path: Path) -> None:
    """A new file readable by its owner alone; or one that begins as SQLite's do, checked before SQLite touches it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        head = os.pread(descriptor, len(_HEADER), 0)
    finally:
        os.close(descriptor)
    if head not in (b"", _HEADER):
        raise _foreign(path)
    sync(path.parent)


def _foreign(path: Path) -> Invalid:
    return Invalid(
        "store.foreign",
        f"{path} is not a store of ours.",
        hint="Name another file; if this one was a store, restore the newest backup.",
    )


def _guarded(connect: Callable[[], SqliteConnection]) -> SqliteConnection:
    try:
        return connect()
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise _damaged(str(error)) from error
    except apsw.Error as error:
        raise explained(error) from error


def _damaged(told: str) -> Terminal:
    return Terminal(
        "store.damaged",
        f"The store is damaged: {told}.",
        hint="Restore the newest backup; the damaged file is kept aside.",
    )


def _connect_writer(path: Path) -> SqliteConnection:
    connection = connect(path)
    try:
        _refuse_foreign_or_damaged(connection, path)
        _prepared(connection)
        connection.wal_autocheckpoint(0)
        # Setting this is not enough: an error while switching shows only in the answer.
        _demand(connection, "journal_mode", "WAL", "wal")
        _demand(connection, "synchronous", "FULL", 2)
        connection.pragma("journal_size_limit", CHECKPOINT_PAGES * _PAGE)
        if connection.pragma("application_id") != APPLICATION_ID:
            connection.pragma("application_id", APPLICATION_ID)
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_foreign_or_damaged(connection: SqliteConnection, path: Path) -> None:
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    if tables != [(0,)] and connection.pragma("application_id") != APPLICATION_ID:
        raise _foreign(path)
    told = connection.execute("PRAGMA quick_check(1)").fetchall()
    if told != [("ok",)]:
        raise _damaged(str(told[0][0]))


def _prepared(connection: SqliteConnection) -> SqliteConnection:
    connection.set_busy_timeout(_BUSY_MS)
    # As PostgreSQL has it: references hold, and "x" is a name, never a text.
    _demand(connection, "foreign_keys", "ON", 1)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.pragma("temp_store", 2)
    return connection


def _demand(connection: SqliteConnection, name: str, value: str, expected: object) -> None:
    connection.execute(f"PRAGMA {name} = {value}").fetchall()
    answer = connection.execute(f"PRAGMA {name}").fetchall()
    if answer != [(expected,)]:
        raise StorageFailed(RuntimeError(f"SQLite answered {answer} to PRAGMA {name} = {value}"))
