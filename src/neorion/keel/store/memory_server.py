"""The engine of a simulated database server: SQLite in memory, with the lease and the failures of PostgreSQL."""

from collections.abc import Iterable, Sequence

from neorion.keel.base import Conflict, Duration, Retry
from neorion.keel.store.engine import TransactionLost, fenced
from neorion.keel.store.memory import MemoryLink
from neorion.keel.store.protocols import Row, Value
from neorion.keel.store.sqlite import SqliteEngine, SqliteReader
from neorion.keel.store.sqlite_connection import connect
from neorion.keel.store.sqlite_open import connect_reader, prepared

_AGAIN_AFTER = Duration.of(ms=500)


class MemoryServerEngine(SqliteEngine):
    """One process's writer. The lease row is the server's, as in `PostgresEngine`."""

    def __init__(self, link: MemoryLink, lease: Duration) -> None:
        self._link = link
        self._server = link.server
        disk = self._server.disk
        disk.anchor = disk.anchor or connect(disk.uri)
        super().__init__(prepared(connect(disk.uri)), lambda: connect_reader(disk.uri), lambda: None)
        self.lease: Duration | None = lease
        self._seen_until: float | None = None

    def claim(self) -> Duration | None:
        self._reach()
        row, now = self._server.lease, self._server.clock.monotonic()
        if row.until < now:
            super().claim()
            row.epoch, row.holder, row.until = self.epoch, self._link.holder, now + self._span
            return None
        if self._seen_until not in (None, row.until):
            raise Conflict("store.owned", f"The store is in use by process {row.holder}.")
        self._seen_until = row.until
        return Duration.of(seconds=min(row.until - now + 0.01, self._span / 6))

    def renew(self) -> None:
        self._reach()
        row = self._server.lease
        if row.epoch != self.epoch:
            raise fenced()
        row.until = self._server.clock.monotonic() + self._span

    def begin(self, *, patient: bool = False) -> None:
        self._reach()
        super().begin(patient=patient)

    def execute(self, sql: str, args: Sequence[Value] = ()) -> list[Row]:
        self._reach()
        return super().execute(sql, args)

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        self._reach()
        super().many(sql, rows)

    def reader(self) -> SqliteReader:
        if not self._link.reachable():
            raise _unreachable()
        return super().reader()

    def close(self) -> None:
        row = self._server.lease
        if self._link.reachable() and row.epoch == self.epoch:
            row.until = float("-inf")
        self._connection.close()

    @property
    def _span(self) -> float:
        return self.lease.seconds if self.lease is not None else 0.0

    def _reach(self) -> None:
        if not self._link.reachable():
            raise TransactionLost(_unreachable())


def _unreachable() -> Retry:
    return Retry("store.unreachable", "The simulated database server cannot be reached.", after=_AGAIN_AFTER)
