"""What development servers need from outside the API's objects."""

from typing import Protocol

from neorion.keel.kube import Key


class Looker(Protocol):
    """Looks into the pods of servers."""

    async def look(self, pod: Key) -> str:
        """What the probe says in the pod, in the words that `decide.read` understands.

        Raises an `Error` of any family when it cannot be run there, or takes too long.
        """
        ...


class Tally(Protocol):
    """Counts what happens outside the API."""

    def looked(self, *, well: bool) -> None:
        """One look, and whether it saw anything."""
        ...


class Untallied:
    """Counts nothing."""

    def looked(self, *, well: bool) -> None:
        """Nobody asked."""


UNTALLIED = Untallied()
