"""From memory to the store: changes are noted at once and made durable together."""

from dataclasses import dataclass, field
from typing import Final

from neorion.keel.base import Instant
from neorion.keel.clock import Clock, Rng, fault_point
from neorion.keel.store import EventLog, Store, Tx, WriteBehind
from neorion.navarch.state.codec import Record, encode

TABLES: Final = ("node", "purchase", "repair", "pool", "trouble", "installation")
# A node's life is some dozens of lines, a pool's a few thousand a month; all of it stays below some hundred megabytes.
STORY: Final = EventLog("story", per_subject=500, total=200_000)
# As many as a policy may look back on.
HEALTH: Final = EventLog("health_event", per_subject=64, total=200_000)


@dataclass(slots=True)
class _Batch:
    rows: dict[tuple[str, str], Record | None] = field(default_factory=dict[tuple[str, str], "Record | None"])
    lines: dict[EventLog, list[tuple[str, Instant, str]]] = field(
        default_factory=dict[EventLog, list[tuple[str, Instant, str]]]
    )

    def write(self, tx: Tx) -> None:
        puts: dict[str, list[tuple[str, bytes]]] = {}
        for (table, key), record in self.rows.items():
            if record is None:
                tx.execute(_DELETE[table], (key,))
            else:
                puts.setdefault(table, []).append((key, encode(record)))
        for table, rows in puts.items():
            tx.many(_PUT[table], rows)
        for history, lines in self.lines.items():
            history.extend(tx, lines)


class Journal(WriteBehind[_Batch]):
    """Changes of the fleet in memory that the store does not have yet."""

    def __init__(self, store: Store, clock: Clock, rng: Rng) -> None:
        super().__init__(store, clock, rng, _Batch)

    def note(self, table: str, key: str, record: Record | None) -> None:
        """`None` deletes."""
        self._batch.rows[table, key] = record
        self._changed()

    def append(self, history: EventLog, subject: str, at: Instant, body: str) -> None:
        self._batch.lines.setdefault(history, []).append((subject, at, body))
        self._changed()

    async def _commit(self, batch: _Batch) -> None:
        await fault_point("navarch.journal.before")
        await super()._commit(batch)
        await fault_point("navarch.journal.after")


_PUT = {
    table: f"INSERT INTO {table} (id, body) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body"  # noqa: S608 -- our own table names
    for table in TABLES
}
_DELETE = {table: f"DELETE FROM {table} WHERE id = ?" for table in TABLES}  # noqa: S608 -- our own table names
