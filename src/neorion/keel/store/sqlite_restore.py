"""Restores a backup into an empty SQLite store, and verifies backups. A restore also moves a store between engines."""

import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from urllib.parse import quote

import apsw

from neorion.keel.base import Conflict, Invalid
from neorion.keel.store.backup import Manifest, read_manifest
from neorion.keel.store.files import own, suitable, sync
from neorion.keel.store.migrations import Migration, pending
from neorion.keel.store.sqlite_connection import SqliteConnection, connect
from neorion.keel.store.sqlite_open import connect_reader

# Owners after the backup had higher epochs, which external effects still contain. The leap exceeds them all: a store
# does not change owners this often between two backups.
EPOCH_LEAP = 1_000_000


@contextmanager
def verified(backup: Path, known: Sequence[Migration]) -> Generator[tuple[SqliteConnection, Manifest]]:
    """Yields the content of a backup that is complete and supported by this program."""
    manifest = read_manifest(backup)
    content = connect_reader(f"file:{quote(str(backup.resolve()))}?immutable=1")
    try:
        problems = content.execute("PRAGMA integrity_check(1)").fetchall()
        if problems != [("ok",)]:
            raise Invalid(
                "store.bad_backup", f"{backup} is damaged: {problems[0][0]}.", hint="Take an older backup."
            )
        pending(
            known,
            content.execute("SELECT number, name, checksum FROM store_migration ORDER BY number").fetchall(),
        )
        yield content, manifest
    finally:
        content.close()


def not_empty(where: str) -> Conflict:
    return Conflict(
        "store.not_empty",
        f"{where} holds a store already.",
        hint="Restore to another place, or with replace=True, which keeps the old one aside.",
    )


def restore_sqlite(backup: Path, target: Path, known: Sequence[Migration], *, replace: bool) -> None:
    target = suitable(target)
    release = own(target)
    partial = target.with_name(f".{target.name}.partial")
    try:
        with verified(backup, known) as (_, manifest):
            occupied = target.exists() and target.stat().st_size > 0
            if occupied and not replace:
                raise not_empty(str(target))
            shutil.copyfile(backup, partial)
            _leap(partial, max(manifest.epoch, _epoch_of(target) if occupied else 0))
        if occupied:
            _move_aside(target)
        partial.rename(target)
        sync(target.parent)
    finally:
        partial.unlink(missing_ok=True)
        release()


def _leap(path: Path, epoch: int) -> None:
    path.chmod(0o600)
    copy = connect(path)
    try:
        copy.execute("UPDATE store_owner SET epoch = ?", (epoch + EPOCH_LEAP,))
    finally:
        copy.close()
    sync(path)


def _epoch_of(path: Path) -> int:
    """The epoch of the store to be replaced; 0 if it is damaged. Closing it merges its journal into the file."""
    old = connect(path)
    try:
        ((epoch,),) = old.execute("SELECT epoch FROM store_owner").fetchall()
        return int(epoch)
    except apsw.Error:
        return 0
    finally:
        with suppress(apsw.Error):
            old.close()


def _move_aside(target: Path) -> None:
    aside = next(
        name for n in count(1) if not (name := target.with_name(f"{target.name}.replaced-{n}")).exists()
    )
    # The database file last: a journal must never be beside a file that is not its own.
    for suffix in ("-shm", "-wal", ""):
        with suppress(FileNotFoundError):
            target.with_name(target.name + suffix).rename(aside.with_name(aside.name + suffix))
    sync(target.parent)
