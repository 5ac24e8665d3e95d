"""The scheduler of a simulated fleet's work: knows what it was told, and when the work left."""

from collections.abc import Callable
from dataclasses import dataclass

from neorion.keel.base import Duration, Instant
from neorion.keel.clock import Clock, Rng
from neorion.navarch.model import Node, NodeId
from neorion.navarch.ports import DrainProgress


@dataclass(slots=True)
class NodeWork:
    """What the scheduler knows of one node. `served` once it took work; `leaves` when its work will have left."""

    open: bool = False
    served: bool = False
    leaves: Instant | None = None
    drained: Instant | None = None


class FakeScheduler:
    """Work on every open node. Asked to leave, it does so within `leaves_within`, or when patience is over."""

    def __init__(self, clock: Clock, rng: Rng, leaves_within: Duration) -> None:
        self._clock = clock
        self._rng = rng
        self._leaves_within = leaves_within
        self.places: dict[NodeId, NodeWork] = {}
        # Is told when a node's work is first asked to leave.
        self.watch: Callable[[Node], None] = lambda _: None

    async def cordon(self, node: Node, why: str) -> None:
        del why
        self._place(node).open = False

    async def uncordon(self, node: Node) -> None:
        place = self._place(node)
        place.open = place.served = True
        place.leaves = place.drained = None

    async def drain(self, node: Node, why: str, left: Duration) -> DrainProgress:
        del why
        place, now = self._place(node), self._clock.now()
        if place.leaves is None:
            place.leaves = now + self._leaves_within * self._rng.random()
            self.watch(node)
        if now < place.leaves and left:
            return DrainProgress(done=False, left=1, sentence="one job is still running")
        place.drained = now
        return DrainProgress(done=True, sentence="its jobs have left")

    async def forget(self, node: Node) -> None:
        self.places.pop(node.id, None)

    def _place(self, node: Node) -> NodeWork:
        return self.places.setdefault(node.id, NodeWork())
