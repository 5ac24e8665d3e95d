"""From memory to the store: changes are noted at once and made durable together."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from neorion.iris.model import JobId
from neorion.iris.state.codec import Record, encode
from neorion.keel.base import Duration
from neorion.keel.clock import Clock, Rng
from neorion.keel.run import Backoff, retry
from neorion.keel.store import Store, Tx

TABLES = ("job", "task", "attempt", "worker", "slice", "blob", "audit")
# Rows are written again until the store takes them: an upsert may be repeated, and memory cannot take back what it knows.
_PATIENCE = Backoff(first=Duration.of(ms=50), most=Duration.of(seconds=2), attempts=10**9)


@dataclass(slots=True)
class _Batch:
    rows: dict[tuple[str, str], Record | bytes | None] = field(
        default_factory=dict[tuple[str, str], "Record | bytes | None"]
    )
    erased: list[JobId] = field(default_factory=list[JobId])

    def write(self, tx: Tx) -> None:
        for table in TABLES:
            rows = [(key, body) for (name, key), body in self.rows.items() if name == table]
            puts = [
                (key, body if isinstance(body, bytes) else encode(body))
                for key, body in rows
                if body is not None
            ]
            gone = [(key,) for key, body in rows if body is None]
            if puts:
                tx.many(_PUT[table], puts)
            if gone:
                tx.many(_DELETE[table], gone)
        for job in self.erased:
            # "/" ends the job's part of a key and "0" is the character after it.
            for table in ("task", "attempt"):
                tx.execute(_ERASE[table], (f"{job}/", f"{job}0"))


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
        # Told how long each commit took.
        self.committed: Callable[[float], None] = lambda _seconds: None

    def note(self, table: str, key: str, record: Record | bytes | None) -> None:
        """`None` deletes."""
        self._batch.rows[table, key] = record
        self._changed()

    def erase(self, job: JobId) -> None:
        """All tasks and attempts of a job."""
        self._batch.erased.append(job)
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
            batch, self._batch, goal = self._batch, _Batch(), self._noted
            began = self._clock.monotonic()
            await retry(lambda batch=batch: self._store.write(batch.write), _PATIENCE, self._clock, self._rng)
            self.committed(self._clock.monotonic() - began)
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
_ERASE = {table: f"DELETE FROM {table} WHERE id >= ? AND id < ?" for table in TABLES}  # noqa: S608 -- our own table names
