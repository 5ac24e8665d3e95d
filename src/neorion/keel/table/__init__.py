"""Transition tables: which moves a thing may make, and the story it tells when it tries another.

Pure. A table belongs to the model of a system; carrying a move out belongs to its `act`.
"""

from neorion.keel.table.transition_table import (
    STORY_MAX,
    IllegalTransition,
    Story,
    Transition,
    TransitionTable,
)

__all__ = ["STORY_MAX", "IllegalTransition", "Story", "Transition", "TransitionTable"]
