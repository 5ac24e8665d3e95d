from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeAlias, TypeVar

from neorion.keel.base.errors import Terminal
from neorion.keel.base.units import Instant

S = TypeVar("S", bound=Enum)
S_co = TypeVar("S_co", bound=Enum, covariant=True)

# Enough to see how a thing came to where it is; the whole past is in the store's history.
STORY_MAX = 12


@dataclass(frozen=True, slots=True)
class Transition(Generic[S_co]):
    """One transition that was made: the new state, the time, and the reason."""

    at: Instant
    state: S_co
    why: str


Story: TypeAlias = tuple[Transition[S], ...]


class IllegalTransition(Terminal):
    """A transition that the table does not allow. It is a defect of the program, so it has the object's history."""

    def __init__(self, table: str, subject: str, move: tuple[Enum, Enum], story: Story[Enum]) -> None:
        before, after = move
        told = "; ".join(f"{step.at} {step.state.name}: {step.why}" for step in story)
        super().__init__(
            "table.illegal_move",
            f"{table} {subject} cannot go from {before.name} to {after.name}.",
            hint=f"its story: {told}" if told else "",
        )
        self.subject = subject
        self.before = before
        self.after = after
        self.story = story


class TransitionTable(Generic[S]):
    """The states of one kind of thing and the moves between them, each with its meaning.

    TASK = Table("task", TaskState.PENDING, {(PENDING, RUNNING): "a worker took it", …})
    """

    def __init__(self, name: str, start: S, moves: Mapping[tuple[S, S], str]) -> None:
        self.name = name
        self.start = start
        self.moves = dict(moves)
        self._allowed = frozenset(moves)
        states = type(start)
        self.ends = tuple(state for state in states if not any(before is state for before, _ in moves))
        stranded = [state.name for state in states if state not in self._reachable()]
        if stranded:
            raise ValueError(f"table {name}: no way leads to {', '.join(stranded)}")

    def allows(self, before: S, after: S) -> bool:
        return (before, after) in self._allowed

    def check(self, subject: str, before: S, after: S, story: Story[S] = ()) -> None:
        if (before, after) not in self._allowed:
            raise IllegalTransition(self.name, subject, (before, after), story)

    def begin(self, why: str, at: Instant) -> Story[S]:
        return (Transition(at, self.start, why),)

    def move(self, subject: str, story: Story[S], step: Transition[S]) -> Story[S]:
        """The history with one more step; the oldest steps are dropped."""
        self.check(subject, story[-1].state, step.state, story)
        return (*story[-(STORY_MAX - 1) :], step)

    def diagram(self) -> str:
        """The table as a Mermaid state diagram, for the docs."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.start.name}"]
        lines += [f"    {before.name} --> {after.name}: {why}" for (before, after), why in self.moves.items()]
        lines += [f"    {end.name} --> [*]" for end in self.ends]
        return "\n".join(lines) + "\n"

    def _reachable(self) -> set[S]:
        seen, frontier = {self.start}, [self.start]
        while frontier:
            here = frontier.pop()
            new = [after for before, after in self.moves if before is here and after not in seen]
            seen.update(new)
            frontier += new
        return seen
