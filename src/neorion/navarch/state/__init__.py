"""State of navarch: the fleet in memory, the journal that makes it durable, and the schema of the store.

Keeps records and queries them. `decide` chooses their changes.
"""

from neorion.navarch.state.codec import HistoryEntry, Installation
from neorion.navarch.state.fleet_state import FleetState, PoolCache
from neorion.navarch.state.journal import Journal
from neorion.navarch.state.load import events_of, installation, load, purchase_of, story_of

__all__ = [
    "FleetState",
    "HistoryEntry",
    "Installation",
    "Journal",
    "PoolCache",
    "events_of",
    "installation",
    "load",
    "purchase_of",
    "story_of",
]
