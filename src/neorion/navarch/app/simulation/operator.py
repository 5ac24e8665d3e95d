"""A simulated operator, who releases repairs that wait for a person."""

from typing import Final

import anyio

from neorion.keel.base import Duration
from neorion.navarch.app.simulation.simulated_fleet import SimulatedFleet
from neorion.navarch.controllers.operator_actions import Requester
from neorion.navarch.model import HoldReason

_INTERVAL: Final = Duration.of(minutes=30)
_ANSWER_S: Final = 30.0


class SimulatedOperator:
    """Reads the holds of every pool twice an hour, and releases a mass silence that is there for the second time."""

    def __init__(self, stage: SimulatedFleet) -> None:
        self._stage = stage
        self._seen: set[str] = set()

    async def run(self) -> None:
        while True:
            await self._stage.world.clock.sleep(_INTERVAL)
            fleet, plane = self._stage.fleet, self._stage.plane
            if fleet is None or plane is None:
                continue
            waiting = [
                pool
                for pool, pool_cache in fleet.context.state.pools.items()
                if any(hold.code is HoldReason.MASS_SILENCE for hold in pool_cache.holds)
            ]
            for pool in waiting:
                if pool in self._seen:
                    # The control plane may die before it answers.
                    with anyio.move_on_after(_ANSWER_S):
                        await plane.orders.release(pool, Requester("operator", "looked at the machines"))
            self._seen = set(waiting)
