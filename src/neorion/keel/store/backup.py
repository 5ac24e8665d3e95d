"""Backups in one portable format for every engine: a SQLite file and a manifest with its digest."""

import hashlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw
import msgspec

from neorion.keel.base import Conflict, Invalid, NotFound, Terminal
from neorion.keel.clock import Clock
from neorion.keel.store.dialect import for_sqlite, statements
from neorion.keel.store.engine import Reader, StorageFailed, full
from neorion.keel.store.files import explaining, sync
from neorion.keel.store.migrations import HISTORY_TABLE, Migration
from neorion.keel.store.sqlite import OWNER_TABLE
from neorion.keel.store.sqlite_connection import SqliteConnection, connect
from neorion.keel.store.sqlite_open import APPLICATION_ID

_FORMAT = 1


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The description of a backup. Written last: without it, a backup is not complete."""

    format: int
    schema: int
    epoch: int
    rows: dict[str, int]
    sha256: str
    created_at: str


def manifest_of(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def write_backup(reader: Reader, migrations: Sequence[Migration], path: Path, clock: Clock) -> None:
    """Copies the reader's snapshot to `path`; the file appears there only when it is complete."""
    if path.exists() or manifest_of(path).exists():
        raise Conflict("store.exists", f"{path} exists already.", hint="Give each backup a name of its own.")
    if not path.parent.is_dir():
        raise NotFound(
            "store.directory", f"The directory {path.parent} does not exist.", hint="Create it first."
        )
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        with _writing(path):
            rows = _copy(reader, migrations, partial)
            sync(partial)
            ((epoch,),) = reader.execute("SELECT epoch FROM store_owner")
            manifest = Manifest(_FORMAT, len(migrations), epoch, rows, _sha256(partial), str(clock.now()))
            partial.rename(path)
            _write_durably(manifest_of(path), msgspec.json.format(msgspec.json.encode(manifest)))
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _writing(path: Path) -> Generator[None]:
    """Translates errors of writing a backup. They concern its caller; the store itself is intact."""
    try:
        with explaining(path):
            yield
    except apsw.FullError as error:
        raise full() from error
    except (StorageFailed, apsw.Error) as error:
        raise Terminal(
            "store.backup_failed",
            f"The backup cannot be written: {error}.",
            hint="Check the free space and the permissions of the folder.",
        ) from error


def read_manifest(path: Path) -> Manifest:
    """Reads the manifest of a backup after verifying the backup's digest."""
    manifest_path = manifest_of(path)
    if not path.is_file() or not manifest_path.is_file():
        raise NotFound(
            "store.no_backup",
            f"No complete backup exists at {path}.",
            hint=f"A backup is a file and its manifest {manifest_path.name} beside it.",
        )
    try:
        manifest = msgspec.json.decode(manifest_path.read_bytes(), type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Invalid(
            "store.bad_backup",
            f"{manifest_path} is not a valid manifest: {error}.",
            hint="Use a folder that a backup of this version wrote.",
        ) from error
    if manifest.format != _FORMAT:
        raise Invalid(
            "store.bad_backup",
            f"{path} has form {manifest.format}, this program reads {_FORMAT}.",
            hint="Use a folder that a backup of this version wrote.",
        )
    if _sha256(path) != manifest.sha256:
        raise Invalid(
            "store.bad_backup",
            f"{path} is not what its manifest describes: it was damaged or changed.",
            hint="Take an older backup.",
        )
    return manifest


def tables_of(database: SqliteConnection) -> list[str]:
    found = database.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    )
    return sorted(str(name) for (name,) in found)


def columns_of(database: SqliteConnection, table: str) -> list[str]:
    return [str(row[1]) for row in database.execute(f'PRAGMA table_info("{table}")')]


def _copy(reader: Reader, migrations: Sequence[Migration], target: Path) -> dict[str, int]:
    """Creates a database with the same migrations and copies the rows, which would reveal damage."""
    database = connect(target)
    try:
        # A partial copy is discarded: only the sync before the rename counts.
        database.pragma("journal_mode", "OFF")
        database.pragma("synchronous", "OFF")
        database.pragma("application_id", APPLICATION_ID)
        database.execute("BEGIN")
        for sql in (HISTORY_TABLE, *(one for step in migrations for one in statements(step.sql))):
            database.execute(for_sqlite(sql))
        database.execute(OWNER_TABLE)
        rows = {table: _copy_table(reader, database, table) for table in tables_of(database)}
        database.execute("COMMIT")
        problems = database.execute("PRAGMA integrity_check(1)").fetchall()
        problems += database.execute("PRAGMA foreign_key_check").fetchall()
    finally:
        database.close()
    if problems != [("ok",)]:
        raise Invalid(
            "store.bad_backup", f"The copy is not sound: {problems[0]}.", hint="Run check() on the store."
        )
    return rows


def _copy_table(reader: Reader, database: SqliteConnection, table: str) -> int:
    columns = columns_of(database, table)
    names = ", ".join(f'"{column}"' for column in columns)
    insert = f'INSERT INTO "{table}" ({names}) VALUES ({", ".join("?" * len(columns))})'  # noqa: S608 -- names of our own schema
    # Migrations may insert rows; those of the snapshot count.
    database.execute(f'DELETE FROM "{table}"')  # noqa: S608 -- as above
    database.executemany(insert, reader.stream(f'SELECT {names} FROM "{table}"'))  # noqa: S608 -- as above
    ((count,),) = database.execute(f'SELECT count(*) FROM "{table}"').fetchall()  # noqa: S608 -- as above
    return int(count)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_durably(path: Path, content: bytes) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(content)
    sync(partial)
    partial.rename(path)
    sync(path.parent)
