"""A check: its plan, the rights it needs, and the coroutine that runs it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.model import CheckPlan, Outcome

# Every check makes and removes a namespace, and pods in it.
COMMON_RIGHTS: Final = (
    "create namespaces",
    "delete namespaces",
    "list namespaces",
    "watch namespaces",
    "list nodes",
    "watch serviceaccounts",
    "create pods",
    "delete pods",
    "watch pods",
)


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `rights` are written as `kubectl auth can-i` takes them: "create jobs.batch"."""

    requirement: str
    plan: CheckPlan
    run: Callable[[Workspace], Awaitable[Outcome]]
    rights: tuple[str, ...] = ()
