"""Rows of the audit log. They are numbered, and the oldest is deleted when there are too many."""

from neorion.iris.model.record import AuditEntry
from neorion.iris.state.codec import decode
from neorion.iris.state.journal import Journal
from neorion.keel.store import Store

# A few weeks of a busy cluster, which take some tens of megabytes.
AUDIT_ENTRIES_MAX = 100_000
_DIGITS = 16


def note_audit_entry(journal: Journal, entry: AuditEntry) -> None:
    journal.note("audit", _key(entry.number), entry)
    if entry.number > AUDIT_ENTRIES_MAX:
        journal.note("audit", _key(entry.number - AUDIT_ENTRIES_MAX), None)


async def last_number(store: Store) -> int:
    """Number of the newest entry, or 0."""
    rows = await store.read(lambda tx: tx.execute("SELECT id FROM audit ORDER BY id DESC LIMIT 1"))
    return int(rows[0][0]) if rows else 0


async def audit_entries_before(store: Store, number: int, limit: int) -> list[AuditEntry]:
    """Entries before `number`, the newest first."""
    rows = await store.read(
        lambda tx: tx.execute(
            "SELECT body FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?", (_key(number), limit)
        )
    )
    return [decode(AuditEntry, bytes(body)) for (body,) in rows]


def _key(number: int) -> str:
    return f"{number:0{_DIGITS}d}"
