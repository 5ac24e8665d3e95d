"""Transition tables: the allowed transitions of an object, and its history for the error of any other transition.

Pure. A table belongs to the model of a system; making a transition belongs to its `controllers`.
"""

from neorion.keel.table.transition_table import (
    STORY_MAX,
    IllegalTransition,
    Story,
    Transition,
    TransitionTable,
)

__all__ = ["STORY_MAX", "IllegalTransition", "Story", "Transition", "TransitionTable"]
