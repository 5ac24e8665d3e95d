"""From memory to the store: changes are noted at once and made durable together."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from neorion.keel.base import Duration, Instant
from neorion.keel.clock import Clock, Rng, point
from neorion.keel.run import Backoff, retry
from neorion.keel.store import History, Store, Tx
from neorion.navarch.state.codec import Record, encode

TABLES: Final = ("node", "purchase", "repair", "pool", "trouble", "installation")
# A node's life is some dozens of lines, a pool's a few thousand a month; all of it stays below some hundred megabytes.
STORY: Final = History("story", per_subject=500, total=200_000)
# As many as a policy may look back on.
HEALTH: Final = History("health_event", per_subject=64, total=200_000)
# Rows are written again until the store takes them: an upsert may be repeated, and memory cannot take back what it knows.
_PATIENCE: Final = Backoff(first=Duration.of(ms=50), most=Duration.of(seconds=2), attempts=10**9)


@dataclass(slots=True)
class _Batch:
    rows: dict[tuple[str, str], Record | None] = field(default_factory=dict[tuple[str, str], "Record | None"])
    lines: dict[History, list[tuple[str, Instant, str]]] = field(
        default_factory=dict[History, list[tuple[str, Instant, str]]]
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


class Journal:
    """Holds what memory knows and the store does not yet.

    Memory is ahead of the store by what is noted here, so nothing outside may learn of a change before `durable` has
    returned: a crash forgets both. Several changes of one record are one write.
    """

    def __init__(self, store: Store, clock: Clock, rng: Rng) -> None:
        self._store = store
        self._clock = clock
        self._rng = rng
        self._batch = _Batch()
        self._noted = 0
        self._written = 0
        self._dirty = asyncio.Event()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def noted(self) -> int:
        """Grows with every change: who remembers it can tell whether there was one."""
        return self._noted

    def note(self, table: str, key: str, record: Record | None) -> None:
        """`None` deletes."""
        self._batch.rows[table, key] = record
        self._changed()

    def tell(self, history: History, subject: str, at: Instant, body: str) -> None:
        self._batch.lines.setdefault(history, []).append((subject, at, body))
        self._changed()

    async def durable(self) -> None:
        """Returns when all that was noted so far is in the store."""
        if self._written >= self._noted:
            return
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((self._noted, done))
        await done

    async def run(self) -> None:
        """Writes what is noted, all of it at once, while the next changes gather."""
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            await point("navarch.journal.before")
            batch, self._batch, goal = self._batch, _Batch(), self._noted
            await retry(lambda batch=batch: self._store.write(batch.write), _PATIENCE, self._clock, self._rng)
            await point("navarch.journal.after")
            self._written = goal
            self._tell(goal)

    def _changed(self) -> None:
        self._noted += 1
        self._dirty.set()

    def _tell(self, goal: int) -> None:
        ready = [done for noted, done in self._waiting if noted <= goal]
        self._waiting = [(noted, done) for noted, done in self._waiting if noted > goal]
        for done in ready:
            if not done.done():
                done.set_result(None)


_PUT = {
    table: f"INSERT INTO {table} (id, body) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body"  # noqa: S608 -- our own table names
    for table in TABLES
}
_DELETE = {table: f"DELETE FROM {table} WHERE id = ?" for table in TABLES}  # noqa: S608 -- our own table names
