"""Records holds and incidents in their pool's history, once for as long as each lasts."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from neorion.keel.base import Duration
from neorion.navarch.controllers.context import FleetContext
from neorion.navarch.controllers.state_writer import StateWriter
from neorion.navarch.decide import incidents
from neorion.navarch.model import Hold, HoldReason

# An incident is many events, so they are evaluated together after this time.
_GATHERED_FOR: Final = Duration.of(seconds=1)


class IncidentRecorder:
    """Records holds and incidents. `wake` requests a tick; it is set when the loop is made."""

    def __init__(self, context: FleetContext, writer: StateWriter) -> None:
        self._context = context
        self._writer = writer
        self._alarm: asyncio.TimerHandle | None = None
        # Recorded and still lasting, by pool and kind.
        self._recorded: dict[tuple[str, str], frozenset[str]] = {}
        self.wake: Callable[[], None] = lambda: None

    def add_event(self) -> None:
        """Schedules a tick, because a new event may be part of an incident."""
        if self._alarm is None:
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_later(_GATHERED_FOR.seconds, self._wake)

    async def tick(self) -> None:
        now, state = self._context.clock.now(), self._context.state
        for spec in self._context.specs.values():
            found = incidents(state.view(spec, self._context.started), now)
            self._record(spec.name, "incident", {f"incident:{one.signature}": one.sentence for one in found})

    def holds(self, pool: str, holds: Iterable[Hold]) -> None:
        lasting: dict[str, str] = {}
        for hold in holds:
            detail = hold.detail if hold.code is HoldReason.COMMON_CAUSE else ""
            lasting.setdefault(f"hold.{hold.code.value}:{detail}", hold.sentence)
        self._record(pool, "hold", lasting)

    def _wake(self) -> None:
        self._alarm = None
        self.wake()

    def _record(self, pool: str, kind: str, lasting: Mapping[str, str]) -> None:
        recorded = self._recorded.get((pool, kind), frozenset())
        for what, sentence in lasting.items():
            if what not in recorded:
                self._writer.record_event(f"pool/{pool}", what.partition(":")[0], sentence)
        self._recorded[pool, kind] = frozenset(lasting)
