"""Several schedulers of the same nodes, or several queues: all are told, and all must agree."""

from collections.abc import Sequence

from neorion.keel.base import Duration
from neorion.navarch.model import Node
from neorion.navarch.ports import DrainProgress, Scheduler, SchedulingStatus


class FanoutScheduler:
    """A node is cordoned when all have taken note, and drained when none has work on it."""

    def __init__(self, schedulers: Sequence[Scheduler]) -> None:
        self._schedulers = schedulers

    async def cordon(self, node: Node, why: str) -> None:
        for each in self._schedulers:
            await each.cordon(node, why)

    async def uncordon(self, node: Node) -> SchedulingStatus:
        found = [await each.uncordon(node) for each in self._schedulers]
        return SchedulingStatus(
            schedulable=all(one.schedulable for one in found),
            sentence="; ".join(one.sentence for one in found if one.sentence),
        )

    async def drain(self, node: Node, why: str, left: Duration) -> DrainProgress:
        """All are asked each time: one that is slow does not keep the next from beginning."""
        told = [await each.drain(node, why, left) for each in self._schedulers]
        waiting = [one for one in told if not one.done] or told
        return DrainProgress(
            done=all(one.done for one in told),
            left=sum(one.left for one in told),
            sentence="; ".join(one.sentence for one in waiting if one.sentence),
        )

    async def machine_up(self, node: Node) -> bool | None:
        """One that reaches the machine is enough."""
        found = [await each.machine_up(node) for each in self._schedulers]
        return True if True in found else False if False in found else None

    async def forget(self, node: Node) -> None:
        for each in self._schedulers:
            await each.forget(node)
