"""Append-only tables of events that stay small: capped for each subject and in total, in the writer's own transaction.

The table is made by a migration of its user:

    CREATE TABLE job_event (
        subject TEXT NOT NULL, nth INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (subject, nth)
    );
    CREATE UNIQUE INDEX job_event_seq ON job_event (seq);

"""

from dataclasses import dataclass

from neorion.keel.base import Instant
from neorion.keel.store.protocols import Tx


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a history. `seq` grows over the whole table, `nth` for the subject alone."""

    subject: str
    nth: int
    seq: int
    at: Instant
    body: str


@dataclass(frozen=True, slots=True)
class History:
    """Keeps the newest `per_subject` events of each subject, and never more than `total` rows."""

    table: str
    per_subject: int
    total: int

    def append(self, tx: Tx, subject: str, at: Instant, body: str) -> Event:
        ((seq, nth),) = tx.execute(
            f"INSERT INTO {self.table} (subject, nth, seq, at, body) SELECT ?, "  # noqa: S608 -- the table's name is written by the programmer
            f"COALESCE((SELECT MAX(nth) FROM {self.table} WHERE subject = ?), 0) + 1, "
            f"COALESCE((SELECT MAX(seq) FROM {self.table}), 0) + 1, ?, ? RETURNING seq, nth",
            (subject, subject, at.ns, body),
        )
        if nth > self.per_subject:
            tx.execute(
                f"DELETE FROM {self.table} WHERE subject = ? AND nth <= ?",  # noqa: S608 -- as above
                (subject, nth - self.per_subject),
            )
        # Counting is not free: it is done once in so many appends, and makes room for as many.
        step = max(1, self.total // 16)
        if seq % step == 0:
            self._make_room(tx, step)
        return Event(subject, nth, seq, at, body)

    def recent(self, tx: Tx, subject: str, limit: int) -> list[Event]:
        """The newest first."""
        rows = tx.execute(
            f"SELECT subject, nth, seq, at, body FROM {self.table} WHERE subject = ? ORDER BY nth DESC LIMIT ?",  # noqa: S608 -- as above
            (subject, limit),
        )
        return [Event(who, nth, seq, Instant(at), body) for who, nth, seq, at, body in rows]

    def _make_room(self, tx: Tx, step: int) -> None:
        ((count,),) = tx.execute(f"SELECT COUNT(*) FROM {self.table}")  # noqa: S608 -- as above
        excess = count - (self.total - step + 1)
        if excess > 0:
            tx.execute(
                f"DELETE FROM {self.table} WHERE seq <= "  # noqa: S608 -- as above
                f"(SELECT seq FROM {self.table} ORDER BY seq LIMIT 1 OFFSET ?)",
                (excess - 1,),
            )
