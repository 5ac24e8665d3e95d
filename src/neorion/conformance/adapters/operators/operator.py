"""An operator as the check needs it: objects that are right or wrong, and the children that they become."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from neorion.conformance.adapters.kinds import Json
from neorion.conformance.adapters.workspace import Workspace
from neorion.keel.kube import Kind


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of an object, and the condition that the operator has to set because of it."""

    words: str
    kind: Kind[Json]
    name: str
    change: Json
    condition: str
    status: str


class TestedOperator(Protocol):
    """One operator. `needs` says what a cluster must have for it; `webhook` guards objects of the kind `guarded`."""

    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> str: ...

    @property
    def rights(self) -> tuple[str, ...]: ...

    @property
    def definitions(self) -> tuple[str, ...]: ...

    @property
    def webhook(self) -> str: ...

    @property
    def guarded(self) -> Kind[Json]: ...

    @property
    def child(self) -> Kind[Json]: ...

    @property
    def owner(self) -> Kind[Json]: ...

    @property
    def end(self) -> tuple[Kind[Json], str]:
        """The kind and the condition by which the end of an object is known: its own, or that of its child."""
        ...

    def body(self, workspace: Workspace, *, wrong: bool) -> Json:
        """An object that the webhook guards: valid by its schema, and wrong by the webhook's rules if it has to be."""
        ...

    async def is_served(self, workspace: Workspace) -> bool: ...

    async def prepare(self, workspace: Workspace) -> None:
        """Makes what objects need beside themselves, for example a queue."""
        ...

    async def make_waiting(self, workspace: Workspace, name: str) -> Json:
        """Makes an object whose child stays what it is while it is looked at."""
        ...

    async def make_fitting(self, workspace: Workspace, name: str) -> Json:
        """Makes an object that reaches its end."""
        ...

    async def make_unmanaged(self, workspace: Workspace, name: str) -> Json:
        """Makes an object that the operator does not manage."""
        ...

    async def edits(self, workspace: Workspace) -> Sequence[Edit]:
        """Changes of one object, in order. The object is there when this returns."""
        ...
