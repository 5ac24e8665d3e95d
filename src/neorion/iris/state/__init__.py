"""State of the controller: records in memory, the journal that makes them durable, and the schema of the store.

Stores and finds records. Decisions about changes are made elsewhere.
"""

from neorion.iris.state.audit_rows import (
    AUDIT_ENTRIES_MAX,
    audit_entries_before,
    last_number,
    note_audit_entry,
)
from neorion.iris.state.cluster_state import ClusterState
from neorion.iris.state.journal import Journal
from neorion.iris.state.load import attempts_of, attempts_of_job, load

__all__ = [
    "AUDIT_ENTRIES_MAX",
    "ClusterState",
    "Journal",
    "attempts_of",
    "attempts_of_job",
    "audit_entries_before",
    "last_number",
    "load",
    "note_audit_entry",
]
