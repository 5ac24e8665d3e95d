"""Journal from memory to the store: changes are noted at once and committed in groups."""

from dataclasses import dataclass, field

from neorion.iris.model import JobId
from neorion.iris.state.codec import Record, encode
from neorion.keel.base import Callbacks
from neorion.keel.clock import Clock, Rng
from neorion.keel.store import Store, Tx, WriteBehind

TABLES = ("job", "task", "attempt", "worker", "slice", "blob", "audit")


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


class Journal(WriteBehind[_Batch]):
    """Changes of records in memory that are not in the store yet."""

    def __init__(self, store: Store, clock: Clock, rng: Rng) -> None:
        super().__init__(store, clock, rng, _Batch)
        # Called with the duration of each commit, in seconds.
        self.on_commit: Callbacks[[float]] = Callbacks()
        # The batch that is being committed.
        self._writing = _Batch()

    def unsaved_jobs(self) -> set[str]:
        """Jobs with changes that are not in the store yet."""
        batches = (self._batch, self._writing)
        return {
            key.partition("/")[0]
            for batch in batches
            for table, key in batch.rows
            if table in ("job", "task", "attempt")
        }

    def note(self, table: str, key: str, record: Record | bytes | None) -> None:
        """Notes the new value of a row. `None` deletes it."""
        self._batch.rows[table, key] = record
        self._changed()

    def erase(self, job: JobId) -> None:
        """Deletes all tasks and attempts of a job."""
        self._batch.erased.append(job)
        self._changed()

    async def _commit(self, batch: _Batch) -> None:
        began = self._clock.monotonic()
        self._writing = batch
        await super()._commit(batch)
        self._writing = _Batch()
        self.on_commit(self._clock.monotonic() - began)


_PUT = {
    table: f"INSERT INTO {table} (id, body) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body"  # noqa: S608 -- our own table names
    for table in TABLES
}
_DELETE = {table: f"DELETE FROM {table} WHERE id = ?" for table in TABLES}  # noqa: S608 -- our own table names
_ERASE = {table: f"DELETE FROM {table} WHERE id >= ? AND id < ?" for table in TABLES}  # noqa: S608 -- our own table names
