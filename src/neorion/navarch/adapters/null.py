"""Null adapters for a fleet without a scheduler and without a source of demand."""

from neorion.keel.base import Duration
from neorion.navarch.model import Demand, Node
from neorion.navarch.ports import DrainProgress, SchedulingStatus


class NoScheduler:
    """Cordons and drains succeed at once, because no scheduler places work."""

    async def cordon(self, node: Node, why: str) -> None:
        del node, why

    async def uncordon(self, node: Node) -> SchedulingStatus:
        del node
        return SchedulingStatus(schedulable=True)

    async def drain(self, node: Node, why: str, left: Duration) -> DrainProgress:
        del node, why, left
        return DrainProgress(done=True, sentence="there is no scheduler")

    async def machine_up(self, node: Node) -> bool | None:
        del node
        return None

    async def forget(self, node: Node) -> None:
        del node


class NoDemand:
    """Knows of no queue. Not knowing is not nothing: queue autoscalers keep the pool as it is."""

    async def demand(self, pool: str) -> Demand:
        del pool
        return Demand()
