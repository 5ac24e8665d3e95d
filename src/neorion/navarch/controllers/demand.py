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

    def __init__(self, context: FleetContext) -> None:
        self._context = context

    async def tick(self) -> None:
        for spec in self._context.specs.values():
            try:
                told = await self._context.backends.demand.demand(spec.name)
            except Error as error:
                # Not known is not nothing: the pool stays as it is.
                log.warning("demand is not known", pool=spec.name, why=error.sentence)
                told = Demand()
            pool_cache = self._context.state.pool(spec.name)
            used = told.utilisation if told.utilisation is not None else self._utilisation(spec.name)
            samples = (
                pool_cache.demand.samples
                if used is None
                else (*pool_cache.demand.samples, used)[-SAMPLES_MAX:]
            )
            pool_cache.demand = replace(told, utilisation=used, samples=samples)
            if spec.scaling.autoscaler is not None:
                # Only the autoscaler uses it.
                self._context.wake()

    def _utilisation(self, pool: str) -> float | None:
        """The average of the nodes that serve; None where none of them has said."""
        told = [
            heartbeat.utilisation
            for node in self._context.state.pool(pool).nodes.values()
            if node.state is NodeState.ACTIVE
            and (heartbeat := self._context.state.heartbeats.get(node.id)) is not None
            and heartbeat.utilisation is not None
        ]
        return sum(told) / len(told) if told else None
