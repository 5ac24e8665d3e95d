"""State of the controller: records in memory, the journal that makes them durable, and the schema of the store.

Stores and finds records. Decisions about changes are made elsewhere.
"""

from neorion.iris.state.audit_rows import KEEP_DEEDS, deeds_before, last_number, note_deed
from neorion.iris.state.cluster_state import ClusterState
from neorion.iris.state.journal import Journal
from neorion.iris.state.load import attempts_of, attempts_of_job, load

__all__ = [
    "KEEP_DEEDS",
    "ClusterState",
    "Journal",
    "attempts_of",
    "attempts_of_job",
    "deeds_before",
    "last_number",
    "load",
    "note_deed",
]
