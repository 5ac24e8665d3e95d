"""Decides the next steps for one NodePool and its nodes. Pure.

The pool of one slice is bought with it and goes with it. The pool of a scale group grows for each slice. Its nodes are assigned to
slices by a label. CoreWeave chooses which nodes go when a target is lowered, and takes idle ones only. So a node is
cordoned and emptied before the target is lowered.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from neorion.capacity.coreweave import NodePool, reclaim_notice
from neorion.iris.adapters.platforms.kubernetes.health import is_placed, is_ready
from neorion.iris.adapters.platforms.kubernetes.record import Record
from neorion.keel.base import Duration, Instant
from neorion.keel.kube import instant
from neorion.keel.kube.core import Node, Pod

# On a node that was cordoned here; what others have cordoned stays so.
CORDONED = "neorion.dev/iris-cordoned"
# A kubelet that is gone never reports the end of its Pods: after this their machine may be given back.
_OVERDUE = Duration.of(seconds=30)


@dataclass(frozen=True, slots=True)
class PoolSlice:
    """A slice with its nodes and its worker Pods. `others` are other Pods of this installation on its nodes."""

    record: Record
    nodes: Sequence[Node]
    workers: Sequence[Pod]
    others: Sequence[Pod] = ()

    @property
    def pods(self) -> Sequence[Pod]:
        return [*self.workers, *self.others]

    @property
    def needs(self) -> int:
        """The number of machines it wants, or still holds while it goes."""
        return self.record.machines if self.record.live else len(self.nodes)

    @property
    def placed(self) -> int:
        return sum(map(is_placed, self.workers))


@dataclass(frozen=True, slots=True)
class ObservedPool:
    """A NodePool as the cluster shows it: its slices, the oldest first, and its nodes without a slice."""

    pool: NodePool | None
    slices: Sequence[PoolSlice]
    free: Sequence[Node]
    now: Instant

    @property
    def needed(self) -> int:
        return sum(each.needs for each in self.slices)

    @property
    def youngest(self) -> Record | None:
        """The slice that a refusal is about: without it the pool is as it was before."""
        waiting = [each for each in self.slices if each.record.live and each.placed < each.record.machines]
        return waiting[-1].record if waiting else None

    def counts(self, record: Record) -> bool:
        """True when the target of the pool includes the machines of this slice."""
        if self.pool is None or self.pool.meta.deleted is not None:
            return False
        return not record.shared or (self.pool.spec.target_nodes or 0) >= self.needed

    def used_beside(self, record: Record) -> bool:
        """True when another slice keeps the pool."""
        return any(not each.record.deleting and each.record.name != record.name for each in self.slices)


@dataclass(frozen=True, slots=True)
class CreatePool:
    """Buys the machines of a slice. The pool of a scale group begins with as many as its slices need."""

    record: Record
    target: int


@dataclass(frozen=True, slots=True)
class ResizePool:
    """Asks for so many machines."""

    pool: NodePool
    target: int


@dataclass(frozen=True, slots=True)
class DeletePool:
    """Gives all machines back."""

    pool: NodePool


@dataclass(frozen=True, slots=True)
class AssignNode:
    """Makes a node one of this slice's."""

    node: Node
    record: Record


@dataclass(frozen=True, slots=True)
class CordonNode:
    """Keeps new Pods away from a node that may go."""

    node: Node


@dataclass(frozen=True, slots=True)
class ReleaseNode:
    """Takes a node, which is empty, from its slice. It stays cordoned until it goes or is assigned again."""

    node: Node


@dataclass(frozen=True, slots=True)
class RequeueAfter:
    """Nothing changes by itself before this time is over."""

    after: Duration


PoolStep = CreatePool | ResizePool | DeletePool | AssignNode | CordonNode | ReleaseNode | RequeueAfter


def next_pool_steps(seen: ObservedPool) -> list[PoolStep]:
    """In this order. The first that fails ends the turn; the next turn sees how far it came."""
    pool = seen.pool
    if pool is not None and pool.meta.deleted is not None:
        return []
    if all(each.record.deleting for each in seen.slices):
        return _end(seen)
    if pool is None:
        waiting = next((each.record for each in seen.slices if _may_buy(each)), None)
        return [CreatePool(waiting, seen.needed)] if waiting is not None else []
    if not any(each.record.shared for each in seen.slices):
        return []
    return [*_give_back(seen), *_assign(seen), *_resize(seen, pool)]


def _may_buy(each: PoolSlice) -> bool:
    """A pool that is gone is bought again only where nothing was lost with it."""
    record = each.record
    return record.live and not (each.nodes if record.shared else record.started)


def _give_back(seen: ObservedPool) -> list[PoolStep]:
    """Nodes of slices that go. While a Pod is there, its machine is held: a silent one may still run its tasks."""
    steps: list[PoolStep] = []
    for each in seen.slices:
        if not each.record.deleting:
            continue
        steps += [CordonNode(node) for node in each.nodes if not node.spec.unschedulable]
        if not each.pods:
            steps += [ReleaseNode(node) for node in each.nodes]
    return steps


def _assign(seen: ObservedPool) -> list[PoolStep]:
    """The oldest slice first, and each whole: half a slice would keep machines from another."""
    free = sorted(
        filter(_is_usable, seen.free), key=lambda node: (CORDONED in node.meta.annotations, node.meta.name)
    )
    steps: list[PoolStep] = []
    for each in seen.slices:
        lacks = each.record.machines - len(each.nodes)
        # One that had a machine for each worker and lost some has failed.
        if not each.record.live or lacks <= 0 or each.placed > len(each.nodes) or lacks > len(free):
            continue
        steps += [AssignNode(node, each.record) for node in free[:lacks]]
        del free[:lacks]
    return steps


def _is_usable(node: Node) -> bool:
    cordoned = node.spec.unschedulable and CORDONED not in node.meta.annotations
    return is_ready(node) and node.meta.deleted is None and not cordoned and not reclaim_notice(node)


def _resize(seen: ObservedPool, pool: NodePool) -> list[PoolStep]:
    target, needed = pool.spec.target_nodes or 0, seen.needed
    emptied = [each for each in seen.slices if each.record.deleting and not each.pods]
    needed -= sum(len(each.nodes) for each in emptied)
    if needed > target:
        return [ResizePool(pool, needed)]
    # A machine whose worker is not there yet looks idle, so CoreWeave could take it.
    placing = any(each.record.live and each.placed < len(each.nodes) for each in seen.slices)
    if needed == target or placing:
        return []
    idle = [CordonNode(node) for node in seen.free if not node.spec.unschedulable]
    return [*idle, ResizePool(pool, needed)]


def _end(seen: ObservedPool) -> list[PoolStep]:
    """Machines are given back when their tasks have ended, or when their kubelet cannot say so any more."""
    pods = [pod for each in seen.slices for pod in each.pods]
    if seen.pool is None or any(pod.meta.deleted is None for pod in pods):
        return []
    left = max((_overdue_at(pod).since(seen.now) for pod in pods), default=Duration(0))
    return [RequeueAfter(left)] if left else [DeletePool(seen.pool)]


def _overdue_at(pod: Pod) -> Instant:
    """The server writes the end of the grace into the mark of deletion."""
    return instant(pod.meta.deleted or "") + _OVERDUE
