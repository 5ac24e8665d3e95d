"""Demand of each pool, collected at intervals."""

from dataclasses import replace

from neorion.keel.base import Error
from neorion.keel.telemetry import logger
from neorion.navarch.controllers.context import FleetContext
from neorion.navarch.model import Demand, NodeState

log = logger(__name__)

# Enough for any look back; one sample per look.
SAMPLES_MAX = 1_000


class DemandCollector:
    """Collects the demand of every pool: utilisation from heartbeats, and queues from the source of demand."""

    def __init__(self, deck: FleetContext) -> None:
        self._deck = deck

    async def tick(self) -> None:
        for spec in self._deck.specs.values():
            try:
                told = await self._deck.world.demand.demand(spec.name)
            except Error as error:
                # Not known is not nothing: the pool stays as it is.
                log.warning("demand is not known", pool=spec.name, why=error.sentence)
                told = Demand()
            shelf = self._deck.book.shelf(spec.name)
            used = told.utilisation if told.utilisation is not None else self._utilisation(spec.name)
            samples = shelf.demand.samples if used is None else (*shelf.demand.samples, used)[-SAMPLES_MAX:]
            shelf.demand = replace(told, utilisation=used, samples=samples)
            if spec.scaling.autoscaler is not None:
                # Only the autoscaler uses it.
                self._deck.wake()

    def _utilisation(self, pool: str) -> float | None:
        """The average of the nodes that serve; None where none of them has said."""
        told = [
            pulse.utilisation
            for node in self._deck.book.shelf(pool).nodes.values()
            if node.state is NodeState.ACTIVE
            and (pulse := self._deck.book.pulses.get(node.id)) is not None
            and pulse.utilisation is not None
        ]
        return sum(told) / len(told) if told else None
