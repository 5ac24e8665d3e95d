import pickle
from enum import Enum
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.keel.base import Instant, Terminal
from neorion.keel.table import STORY_MAX, IllegalTransition, Transition, TransitionTable


class Door(Enum):
    SHUT = "shut"
    OPEN = "open"
    LOCKED = "locked"
    GONE = "gone"


DOOR = TransitionTable(
    "door",
    Door.SHUT,
    {
        (Door.SHUT, Door.OPEN): "pushed",
        (Door.OPEN, Door.SHUT): "pulled",
        (Door.SHUT, Door.LOCKED): "key turned",
        (Door.LOCKED, Door.SHUT): "key turned back",
        (Door.OPEN, Door.GONE): "taken off its hinges",
    },
)


def test_a_legal_walk_becomes_a_story():
    story = DOOR.begin("built", Instant(0))
    story = DOOR.move("front", story, Transition(Instant(1), Door.OPEN, "guest"))
    assert [step.state for step in story] == [Door.SHUT, Door.OPEN]


def test_an_illegal_move_raises_with_the_whole_story():
    story = DOOR.begin("built", Instant(0))
    story = DOOR.move("front", story, Transition(Instant(10**9), Door.LOCKED, "night"))
    with pytest.raises(IllegalTransition) as caught:
        DOOR.move("front", story, Transition(Instant(2 * 10**9), Door.OPEN, "guest"))
    assert isinstance(caught.value, Terminal)
    assert str(caught.value) == "door front cannot go from LOCKED to OPEN."
    assert "built" in caught.value.hint
    assert "night" in caught.value.hint
    assert caught.value.story == story


def test_an_illegal_move_survives_a_process_boundary():
    error = IllegalTransition("door", "front", (Door.GONE, Door.OPEN), ())
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 -- our own bytes
    assert (type(again), again.sentence, again.after) == (IllegalTransition, error.sentence, Door.OPEN)


@given(st.lists(st.sampled_from(Door), max_size=60))
def test_a_story_only_ever_holds_moves_of_the_table_and_stays_bounded(wishes: list[Door]):
    story = DOOR.begin("built", Instant(0))
    for n, wish in enumerate(wishes):
        before = story
        try:
            story = DOOR.move("front", story, Transition(Instant(n), wish, "wish"))
        except IllegalTransition:
            assert not DOOR.allows(before[-1].state, wish)
            assert story is before
    assert len(story) <= STORY_MAX
    assert all(DOOR.allows(a.state, b.state) for a, b in pairwise(story))


def test_ends_are_the_states_nothing_leaves():
    assert DOOR.ends == (Door.GONE,)


def test_a_state_nobody_can_reach_is_refused_when_the_table_is_built():
    with pytest.raises(ValueError, match="no way leads to LOCKED, GONE"):
        TransitionTable("door", Door.SHUT, {(Door.SHUT, Door.OPEN): "pushed"})


def test_the_diagram_names_every_move():
    drawn = DOOR.diagram()
    assert drawn.startswith("stateDiagram-v2\n    [*] --> SHUT\n")
    assert "    OPEN --> GONE: taken off its hinges\n" in drawn
    assert drawn.endswith("    GONE --> [*]\n")
