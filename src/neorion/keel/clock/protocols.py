"""Protocols of time, randomness and ids. Pure, so that `decide` can import these types."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from neorion.keel.base.ids import Id
from neorion.keel.base.units import Duration, Instant

T = TypeVar("T")
SomeId = TypeVar("SomeId", bound=Id)


class Clock(Protocol):
    """Wall time for records and people, monotonic time for everything that measures."""

    def now(self) -> Instant:
        """Wall time. It may jump; never subtract two of these to decide that something is late."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed point; never goes back."""
        ...

    async def sleep(self, span: Duration) -> None:
        """Waits at least this long in monotonic time, on any loop. Wall time may pass differently."""
        ...


class Rng(Protocol):
    """Random numbers. Not for secrets: those come from Ids."""

    def random(self) -> float: ...

    def uniform(self, a: float, b: float, /) -> float: ...

    def randrange(self, start: int, stop: int, /) -> int: ...

    def choice(self, seq: Sequence[T], /) -> T: ...


class Ids(Protocol):
    """New ids: sortable by creation time, unique without coordination."""

    def new(self, kind: type[SomeId]) -> SomeId: ...

    def secret(self) -> str:
        """256 bits for tokens, safe in URLs."""
        ...
