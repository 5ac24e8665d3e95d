"""A durable store of rows: one owner, group commit, fencing by epoch, migrations, backups.

SQLite for one machine, PostgreSQL for more, with the same guarantees. Contains the engines and the parts that they
share; tables, and the meaning of rows, belong to the users of this package.
"""

from neorion.keel.store.engine import end_process
from neorion.keel.store.event_log import EventLog, EventRecord
from neorion.keel.store.executor import InlineExecutor, SerialExecutor, ThreadExecutor
from neorion.keel.store.memory import MemoryDisk
from neorion.keel.store.migrations import Migration, migrations_in
from neorion.keel.store.open import LEASE, open_store, restore
from neorion.keel.store.protocols import Row, Store, Tx, Value
from neorion.keel.store.write_behind import WriteBehind

__all__ = [
    "LEASE",
    "EventLog",
    "EventRecord",
    "InlineExecutor",
    "MemoryDisk",
    "Migration",
    "Row",
    "SerialExecutor",
    "Store",
    "ThreadExecutor",
    "Tx",
    "Value",
    "WriteBehind",
    "end_process",
    "migrations_in",
    "open_store",
    "restore",
]
