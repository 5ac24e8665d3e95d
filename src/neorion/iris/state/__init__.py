"""What the controller knows: the book in memory, the journal that makes it durable, and the schema of the store.

Keeps records and answers questions about them. Which record should come next is not decided here.
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
