"""Checks the linearizability of small histories by search.

Clients record requests and responses. The history is linearizable when every operation can be given one moment
between its beginning and its end such that the responses are those of a register with sequential operations. An
operation without a response may have happened at any moment after its beginning, or never.
"""

from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final, TypeVar

from neorion.keel.base import Finding, Severity, Terminal

T = TypeVar("T")

# The search is exponential at worst; histories that need more than this cannot be checked.
CONFIGURATIONS_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class Read:
    """Returns the value."""


@dataclass(frozen=True, slots=True)
class Write:
    """Sets the value; the response does not matter."""

    value: object


@dataclass(frozen=True, slots=True)
class Swap:
    """Sets the value if it is `old`; returns whether it was."""

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
        """Returns whether the response fits a register with `value`, and the value of the register afterwards."""
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
    """The operations of clients on registers, by key."""

    initial: object = None
    _moments: Iterator[int] = field(default_factory=count)
    _operations: dict[str, list[Operation]] = field(default_factory=dict[str, list[Operation]])

    async def record(self, key: str, action: Action, effect: Awaitable[T]) -> T:
        """Awaits the effect and records its response. If it raises, the outcome is unknown."""
        operation = Operation(action, next(self._moments))
        self._operations.setdefault(key, []).append(operation)
        operation.answer = answer = await effect
        operation.ended = next(self._moments)
        return answer

    def violations(self) -> list[Finding]:
        return [
            Finding(
                Severity.ERROR, "history.not_linearizable", key, f"no order explains {_listed(operations)}"
            )
            for key, operations in self._operations.items()
            if not linearizable(operations, self.initial)
        ]


def linearizable(operations: Sequence[Operation], initial: object) -> bool:
    """Searches depth first over (operations done, value); visits each such configuration once."""
    answered = sum(1 << index for index, operation in enumerate(operations) if operation.ended is not None)
    seen = {(0, repr(initial))}
    stack = [(0, initial)]
    while stack:
        done, value = stack.pop()
        if done & answered == answered:
            return True
        for index in _next(operations, done):
            fits, value_after = operations[index].after(value)
            configuration = (done | 1 << index, repr(value_after))
            if fits and configuration not in seen:
                seen.add(configuration)
                stack.append((done | 1 << index, value_after))
        if len(seen) > CONFIGURATIONS_MAX:
            raise Terminal(
                "sim.history_too_wide",
                f"The search for an order of {len(operations)} operations was given up.",
                hint="Record fewer operations for each key, or let fewer clients overlap.",
            )
    return False


def _next(operations: Sequence[Operation], done: int) -> list[int]:
    """The operations that may come next: not done, and begun before any other open one has ended."""
    left = [index for index in range(len(operations)) if not done >> index & 1]
    ends = [ended for index in left if (ended := operations[index].ended) is not None]
    first_end = min(ends, default=None)
    return [index for index in left if first_end is None or operations[index].began < first_end]


def _listed(operations: Sequence[Operation]) -> str:
    return ", ".join(
        f"{operation.action}={operation.answer if operation.ended is not None else '?'}"
        f" [{operation.began}-{'' if operation.ended is None else operation.ended}]"
        for operation in operations
    )
