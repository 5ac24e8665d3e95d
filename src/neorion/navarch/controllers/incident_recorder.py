"""Records holds and incidents in their pool's history, once for as long as each lasts."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from neorion.keel.base import Duration
from neorion.navarch.controllers.context import FleetContext
from neorion.navarch.controllers.state_writer import StateWriter
from neorion.navarch.decide import incidents
from neorion.navarch.model import Hold, HoldReason

# One incident is many events: those that come together are looked at together, however many there are.
_GATHERED_FOR: Final = Duration.of(seconds=1)


class IncidentRecorder:
    """`wake` turns the loop of its `tick`; it is set when the loop is made."""

    def __init__(self, deck: FleetContext, moves: StateWriter) -> None:
        self._deck = deck
        self._moves = moves
        self._alarm: asyncio.TimerHandle | None = None
        # By pool and kind.
        self._told: dict[tuple[str, str], frozenset[str]] = {}
        self.wake: Callable[[], None] = lambda: None

    def heard(self) -> None:
        """An event came: whether it is part of something larger is looked at soon."""
        if self._alarm is None:
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_later(_GATHERED_FOR.seconds, self._look)

    async def tick(self) -> None:
        now, book = self._deck.clock.now(), self._deck.book
        for spec in self._deck.specs.values():
            found = incidents(book.view(spec, self._deck.started), now)
            self._tell(spec.name, "incident", {f"incident:{one.signature}": one.sentence for one in found})

    def holds(self, pool: str, holds: Iterable[Hold]) -> None:
        lasting: dict[str, str] = {}
        for hold in holds:
            detail = hold.detail if hold.code is HoldReason.COMMON_CAUSE else ""
            lasting.setdefault(f"hold.{hold.code.value}:{detail}", hold.sentence)
        self._tell(pool, "hold", lasting)

    def _look(self) -> None:
        self._alarm = None
        self.wake()

    def _tell(self, pool: str, kind: str, lasting: Mapping[str, str]) -> None:
        told = self._told.get((pool, kind), frozenset())
        for what, sentence in lasting.items():
            if what not in told:
                self._moves.tell(f"pool/{pool}", what.partition(":")[0], sentence)
        self._told[pool, kind] = frozenset(lasting)
