"""Append-only tables of events that stay small: capped for each subject and in total, in the writer's own transaction.

The table is made by a migration of its user:

    CREATE TABLE job_event (
        subject TEXT NOT NULL, nth INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (subject, nth)
    );
    CREATE UNIQUE INDEX job_event_seq ON job_event (seq);

"""

from collections.abc import Iterable
from dataclasses import dataclass

from neorion.keel.base import Instant
from neorion.keel.store.protocols import Tx


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One line of a history. `seq` grows over the whole table, `nth` for the subject alone."""

    subject: str
    nth: int
    seq: int
    at: Instant
    body: str


@dataclass(frozen=True, slots=True)
class EventLog:
    """Keeps the newest `per_subject` events of each subject, and never more than `total` rows."""

    table: str
    per_subject: int
    total: int

    def append(self, tx: Tx, subject: str, at: Instant, body: str) -> EventRecord:
        (event,) = self.extend(tx, [(subject, at, body)])
        return event

    def extend(self, tx: Tx, lines: Iterable[tuple[str, Instant, str]]) -> list[EventRecord]:
        """Several lines, each a subject with its time and body: far cheaper than one after the other."""
        ((last,),) = tx.execute(f"SELECT COALESCE(MAX(seq), 0) FROM {self.table}")  # noqa: S608 -- the table's name is written by the programmer
        nths: dict[str, int] = {}
        events: list[EventRecord] = []
        for seq, (subject, at, body) in enumerate(lines, last + 1):
            nths[subject] = nth = (nths.get(subject) or self._last_of(tx, subject)) + 1
            events.append(EventRecord(subject, nth, seq, at, body))
        tx.many(
            f"INSERT INTO {self.table} (subject, nth, seq, at, body) VALUES (?, ?, ?, ?, ?)",  # noqa: S608 -- as above
            [(one.subject, one.nth, one.seq, one.at.ns, one.body) for one in events],
        )
        for subject, nth in nths.items():
            if nth > self.per_subject:
                tx.execute(
                    f"DELETE FROM {self.table} WHERE subject = ? AND nth <= ?",  # noqa: S608 -- as above
                    (subject, nth - self.per_subject),
                )
        # Counting is costly, so it happens once in `step` appends, and makes room for as many.
        step = max(1, self.total // 16)
        if last // step != (last + len(events)) // step:
            self._make_room(tx, step)
        return events

    def recent(self, tx: Tx, subject: str, limit: int) -> list[EventRecord]:
        """The newest first."""
        rows = tx.execute(
            f"SELECT subject, nth, seq, at, body FROM {self.table} WHERE subject = ? ORDER BY nth DESC LIMIT ?",  # noqa: S608 -- as above
            (subject, limit),
        )
        return [EventRecord(who, nth, seq, Instant(at), body) for who, nth, seq, at, body in rows]

    def _last_of(self, tx: Tx, subject: str) -> int:
        ((nth,),) = tx.execute(
            f"SELECT COALESCE(MAX(nth), 0) FROM {self.table} WHERE subject = ?",  # noqa: S608 -- as above
            (subject,),
        )
        return nth

    def _make_room(self, tx: Tx, step: int) -> None:
        ((count,),) = tx.execute(f"SELECT COUNT(*) FROM {self.table}")  # noqa: S608 -- as above
        excess = count - (self.total - step + 1)
        if excess > 0:
            tx.execute(
                f"DELETE FROM {self.table} WHERE seq <= "  # noqa: S608 -- as above
                f"(SELECT seq FROM {self.table} ORDER BY seq LIMIT 1 OFFSET ?)",
                (excess - 1,),
            )
