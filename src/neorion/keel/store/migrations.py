"""Numbered steps from an empty database to the current schema. A step that was applied anywhere is never edited."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from neorion.keel.base import Conflict, Invalid
from neorion.keel.clock import Clock
from neorion.keel.store.dialect import statements
from neorion.keel.store.engine import Engine
from neorion.keel.store.protocols import Row
from neorion.keel.telemetry import logger

log = logger(__name__)

# The same on every engine; part of each backup.
HISTORY_TABLE = (
    "CREATE TABLE IF NOT EXISTS store_migration"
    " (number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL)"
)
_FILE = re.compile(r"([0-9]{4})_([a-z0-9_]+)\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: statements of the common SQL, applied in one transaction with the record of the step."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        # Line ends depend on the checkout and have no meaning.
        return hashlib.sha256(self.sql.replace("\r\n", "\n").encode()).hexdigest()

    def __str__(self) -> str:
        return f"{self.number:04d}_{self.name}"


def migrations_in(package: str) -> list[Migration]:
    """The files `0001_name.sql` of a package, in order."""
    found = list[Migration]()
    for file in resources.files(package).iterdir():
        if not file.name.endswith(".sql"):
            continue
        parts = _FILE.fullmatch(file.name)
        if parts is None:
            raise Invalid(
                "store.migrations",
                f"{file.name} in {package} is not a valid name of a migration.",
                hint="Name it like 0001_first.sql.",
            )
        found.append(Migration(int(parts[1]), parts[2], file.read_text("utf-8")))
    return sorted(found, key=lambda migration: migration.number)


def pending(known: Sequence[Migration], applied: Sequence[Row]) -> list[Migration]:
    """The migrations to apply; refuses gaps, edited steps and a database newer than the program."""
    numbers = [migration.number for migration in known]
    if numbers != list(range(1, len(known) + 1)):
        raise Invalid(
            "store.migrations",
            f"The migrations are numbered {numbers}, not 1 to {len(known)} without gaps.",
            hint="Number each new step one above the last.",
        )
    if len(applied) > len(known):
        raise Conflict(
            "store.newer",
            f"The database is at version {len(applied)}, this program supports {len(known)}.",
            hint="Run the newer program, or restore a backup made before the upgrade.",
        )
    for migration, (number, name, checksum) in zip(known, applied, strict=False):
        if (migration.number, migration.checksum) != (number, checksum):
            raise Conflict(
                "store.edited",
                f"Migration {migration} is not the {number:04d}_{name} that was applied to this database.",
                hint="Take the edit back and write it as a new migration.",
            )
    return list(known[len(applied) :])


def migrate(engine: Engine, known: Sequence[Migration], clock: Clock) -> None:
    """Applies pending migrations, each in its own transaction."""
    for migration in pending(known, engine.applied()):
        engine.begin(patient=True)
        try:
            for statement in statements(migration.sql):
                engine.execute(statement)
            engine.execute(
                "INSERT INTO store_migration (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)",
                (migration.number, migration.name, migration.checksum, clock.now().ns),
            )
            engine.commit()
        except BaseException:
            engine.abandon()
            raise
        log.info("migration applied", migration=str(migration))
