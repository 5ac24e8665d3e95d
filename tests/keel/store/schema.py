"""The tables that tests of the store use: pairs of rows that must never be seen half."""

from neorion.keel.store import Migration, Tx

PAIRS = Migration(
    1,
    "pairs",
    """
    CREATE TABLE pair (key TEXT NOT NULL, half INTEGER NOT NULL, PRIMARY KEY (key, half)); -- two rows; always both
    CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT, amount REAL, raw BLOB);
    """,
)
LABELS = Migration(
    2,
    "labels",
    """
    ALTER TABLE note ADD COLUMN label TEXT NOT NULL DEFAULT 'none';
    CREATE TABLE tag (note INTEGER NOT NULL REFERENCES note (id), name TEXT NOT NULL, PRIMARY KEY (note, name));
    """,
)
EVENTS = Migration(
    3,
    "events",
    """
    CREATE TABLE event (
        subject TEXT NOT NULL, nth INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (subject, nth)
    );
    CREATE UNIQUE INDEX event_seq ON event (seq);
    INSERT INTO note (id, body) VALUES (0, 'brought by a migration');
    """,
)
ALL = [PAIRS, LABELS, EVENTS]


class Pair:
    """A change of two rows."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __call__(self, tx: Tx) -> str:
        tx.execute("INSERT INTO pair (key, half) VALUES (?, 1)", (self.key,))
        tx.execute("INSERT INTO pair (key, half) VALUES (?, 2)", (self.key,))
        return self.key


def keys(tx: Tx) -> list[str]:
    """The pairs that are there; a half one is an error of the store."""
    rows = tx.execute("SELECT key, COUNT(*) FROM pair GROUP BY key ORDER BY key")
    assert all(count == 2 for _, count in rows), f"half a change: {rows}"
    return [key for key, _ in rows]
