"""Did it look like one register to everybody? Linearizability of small histories, by search.

Clients record what they asked and heard. The history is linearizable when every operation can be given one moment
between its beginning and its end such that the answers are those of a register that does one thing at a time. An
operation whose outcome its client never learned may have happened at any moment after its beginning, or never.
"""

from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final, TypeVar

from neorion.keel.base import Finding, Severity, Terminal

T = TypeVar("T")

# The search is exponential at worst; histories that need more than this are too wide to be checked.
CONFIGURATIONS_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class Read:
    """Answers with the value."""


@dataclass(frozen=True, slots=True)
class Write:
    """Sets the value; the answer does not matter."""

    value: object


@dataclass(frozen=True, slots=True)
class Swap:
    """Sets the value if it is `old`; answers whether it was."""

    old: object
    new: object


Action = Read | Write | Swap


@dataclass(slots=True, eq=False)
class Operation:
    """One action of one client; without an end, its outcome is unknown."""

    action: Action
    began: int
    ended: int | None = None
    answer: object = None

    def after(self, value: object) -> tuple[bool, object]:
        """Whether the answer fits a register that holds `value`, and what the register holds then."""
        match self.action:
            case Read():
                return self.ended is None or self.answer == value, value
            case Write(new):
                return True, new
            case Swap(old, new):
                swapped = value == old
                return self.ended is None or self.answer == swapped, new if swapped else value


@dataclass(slots=True)
class OperationHistory:
    """What clients did to registers, each under its key."""

    initial: object = None
    _moments: Iterator[int] = field(default_factory=count)
    _operations: dict[str, list[Operation]] = field(default_factory=dict[str, list[Operation]])

    async def record(self, key: str, action: Action, effect: Awaitable[T]) -> T:
        """Awaits the effect and notes its answer. If it raises, whether it happened is unknown."""
        operation = Operation(action, next(self._moments))
        self._operations.setdefault(key, []).append(operation)
        operation.answer = answer = await effect
        operation.ended = next(self._moments)
        return answer

    def violations(self) -> list[Finding]:
        return [
            Finding(Severity.ERROR, "history.not_linearizable", key, f"no order explains {_told(operations)}")
            for key, operations in self._operations.items()
            if not linearizable(operations, self.initial)
        ]


def linearizable(operations: Sequence[Operation], initial: object) -> bool:
    """Depth first over (operations done, value held), each such configuration once."""
    answered = sum(1 << index for index, operation in enumerate(operations) if operation.ended is not None)
    seen = {(0, repr(initial))}
    stack = [(0, initial)]
    while stack:
        done, value = stack.pop()
        if done & answered == answered:
            return True
        for index in _next(operations, done):
            fits, held = operations[index].after(value)
            configuration = (done | 1 << index, repr(held))
            if fits and configuration not in seen:
                seen.add(configuration)
                stack.append((done | 1 << index, held))
        if len(seen) > CONFIGURATIONS_MAX:
            raise Terminal(
                "sim.history_too_wide",
                f"The search for an order of {len(operations)} operations was given up.",
                hint="Record fewer operations for each key, or let fewer clients overlap.",
            )
    return False


def _next(operations: Sequence[Operation], done: int) -> list[int]:
    """Those that may come next: not done yet, and begun before any other that is not done has ended."""
    left = [index for index in range(len(operations)) if not done >> index & 1]
    ends = [ended for index in left if (ended := operations[index].ended) is not None]
    first_end = min(ends, default=None)
    return [index for index in left if first_end is None or operations[index].began < first_end]


def _told(operations: Sequence[Operation]) -> str:
    return ", ".join(
        f"{operation.action}={operation.answer if operation.ended is not None else '?'}"
        f" [{operation.began}-{'' if operation.ended is None else operation.ended}]"
        for operation in operations
    )
