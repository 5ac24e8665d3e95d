"""A simulated scheduler: the nodes that take work, and the time at which their work leaves."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from neorion.keel.base import Duration, Instant, Retry
from neorion.keel.clock import Clock, Rng
from neorion.navarch.model import Node, NodeId
from neorion.navarch.ports import DrainProgress, SchedulingStatus

_RETRY_AFTER: Final = Duration.of(seconds=5)


@dataclass(slots=True)
class NodeWork:
    """The scheduler's state of one node, which joins the cluster at `joins`.

    `served` is set when the node first takes work. `leaves` is the time at which its work has left.
    """

    joins: Instant
    open: bool = False
    served: bool = False
    leaves: Instant | None = None
    drained: Instant | None = None


@dataclass(slots=True)
class SchedulerBehaviour:
    """Faults between the control plane and the scheduler.

    `lost` is the chance that a call fails, half of the time after it took effect. New nodes join within `joins_within`.
    """

    leaves_within: Duration = field(default=Duration.of(minutes=10))
    joins_within: Duration = field(default=Duration(0))
    lost: float = 0.0


class FakeScheduler:
    """A scheduler that places work on every open node. On a drain the work leaves within `leaves_within`, or at the deadline."""

    def __init__(self, clock: Clock, rng: Rng, behaviour: SchedulerBehaviour) -> None:
        self._clock = clock
        self._rng = rng
        self.behaviour = behaviour
        self.places: dict[NodeId, NodeWork] = {}
        # Changes whenever a node is opened or closed.
        self.version = 0
        # Called when the work of a node is first asked to leave.
        self.watch: Callable[[Node], None] = lambda _: None
        # Whether the kubelet of a node reports.
        self.kubelet: Callable[[Node], bool] = lambda _: True

    async def cordon(self, node: Node, why: str) -> None:
        del why
        self._fail_before()
        self._set_open(self._work(node), is_open=False)
        self._fail_after()

    async def uncordon(self, node: Node) -> SchedulingStatus:
        self._fail_before()
        work = self._work(node)
        if self._clock.now() < work.joins:
            return SchedulingStatus(schedulable=False, sentence="it has not joined the cluster")
        self._set_open(work, is_open=True)
        self._fail_after()
        return SchedulingStatus(schedulable=True)

    async def drain(self, node: Node, why: str, left: Duration) -> DrainProgress:
        del why
        self._fail_before()
        work, now = self._work(node), self._clock.now()
        if work.leaves is None:
            work.leaves = now + self.behaviour.leaves_within * self._rng.random()
            self.watch(node)
        if now < work.leaves and left:
            return DrainProgress(done=False, left=1, sentence="one job is still running")
        work.drained = now
        return DrainProgress(done=True, sentence="its jobs have left")

    async def machine_up(self, node: Node) -> bool | None:
        self._fail_before()
        return self.kubelet(node)

    async def forget(self, node: Node) -> None:
        self.places.pop(node.id, None)

    def _set_open(self, work: NodeWork, *, is_open: bool) -> None:
        self.version += work.open is not is_open
        work.open = is_open
        if is_open:
            work.served = True
            work.leaves = work.drained = None

    def _work(self, node: Node) -> NodeWork:
        found = self.places.get(node.id)
        if found is None:
            joins = self._clock.now() + self.behaviour.joins_within * self._rng.random()
            found = self.places[node.id] = NodeWork(joins)
        return found

    def _fail_before(self) -> None:
        if self.behaviour.lost and self._rng.random() < self.behaviour.lost / 2:
            raise Retry("navarch.simulated_loss", "The call to the scheduler was lost.", after=_RETRY_AFTER)

    def _fail_after(self) -> None:
        if self.behaviour.lost and self._rng.random() < self.behaviour.lost / 2:
            raise Retry("navarch.simulated_loss", "The scheduler's answer was lost.", after=_RETRY_AFTER)
