"""Pending reasons: the first obstacle to placement, with the requested and the available amount."""

from collections.abc import Sequence

from neorion.iris.decide.worker_table import SLICE, WORKER, RequestClass, WorkerTable
from neorion.iris.model import Attributes, Constraint, Op, PendingCode, PendingReason
from neorion.keel.base import nearest

# The scarcest first: a job that lacks GPUs and memory gets the reason about GPUs.
_DIMENSIONS = (
    (3, PendingCode.GPU_SHORT),
    (0, PendingCode.CPU_SHORT),
    (1, PendingCode.MEMORY_SHORT),
    (2, PendingCode.DISK_SHORT),
)


class FreeCapacity:
    """Free capacity after placement, computed once for all request classes that may use the same workers."""

    def __init__(self, pool: WorkerTable) -> None:
        self.pool = pool
        self._bounds: dict[int, list[tuple[int, int]]] = {}

    def bounds(self, spots: list[int]) -> list[tuple[int, int]]:
        """Minimum and maximum free amount of each resource on these workers."""
        # Request classes with the same constraints share one list, which lives as long as the table.
        bounds = self._bounds.get(id(spots))
        if bounds is None:
            columns = zip(*(self.pool.free[spot] for spot in spots), strict=True)
            bounds = self._bounds[id(spots)] = [(min(column), max(column)) for column in columns]
        return bounds


def why_no_room(offers: FreeCapacity, kind: RequestClass, tasks: int) -> PendingReason | None:
    """Reason why the tasks have no room; None if they have."""
    reason = why_not_one(offers, kind)
    pool = offers.pool
    gang = kind.placement.gang
    if reason is not None or not gang:
        return reason
    best = max(sum(pool.room(kind, spot, tasks) for spot in row.worker_indexes) for row in kind.rows)
    return PendingReason(PendingCode.GANG_SHORT, tasks, best, gang) if best < tasks else None


def why_not_one(offers: FreeCapacity, kind: RequestClass) -> PendingReason | None:
    """Reason why not even one task of this class has room; None if one has."""
    pool, gang = offers.pool, kind.placement.gang
    if not pool.workers:
        return PendingReason(PendingCode.NO_WORKERS)
    if not kind.row.worker_indexes:
        return _no_eligible_worker(pool, kind)
    if gang and not kind.rows:
        keys = _keys([worker.attributes for worker in pool.workers])
        return PendingReason(
            PendingCode.GANG_KEY, subject=gang, near=nearest(gang, [*keys, SLICE, WORKER]) or ""
        )
    return _shortage(offers, kind)


def _shortage(offers: FreeCapacity, kind: RequestClass) -> PendingReason | None:
    """First resource that is too scarce on the workers that have enough of all resources before it."""
    free, spots = offers.pool.free, kind.row.worker_indexes
    bounds = offers.bounds(spots)
    for dimension, code in _DIMENSIONS:
        need = kind.needs[dimension]
        least, best = bounds[dimension]
        if least >= need:
            continue
        if best >= need or spots is not kind.row.worker_indexes:
            enough = [spot for spot in spots if free[spot][dimension] >= need]
            if enough:
                spots = enough
                continue
            best = max(free[spot][dimension] for spot in spots)
        return PendingReason(code, need, max(0, best))
    return None


def _no_eligible_worker(pool: WorkerTable, kind: RequestClass) -> PendingReason:
    required = [constraint for constraint in kind.placement.constraints if constraint.required]
    offered = [worker.attributes for worker in pool.workers]
    for constraint in required:
        if not any(constraint.holds(attributes) for attributes in offered):
            near = _near(constraint, offered)
            return PendingReason(PendingCode.CONSTRAINT, subject=str(constraint), near=near)
    variant = kind.resources.gpu_variant if kind.resources.gpus else ""
    known = {worker.total.gpu_variant: None for worker in pool.workers if worker.total.gpus}
    if variant and variant not in known:
        return PendingReason(PendingCode.GPU_VARIANT, subject=variant, near=nearest(variant, known) or "")
    unmet = [str(constraint) for constraint in required] + ([f"{variant} GPUs"] if variant else [])
    return PendingReason(PendingCode.CONSTRAINT, subject=" with ".join(unmet))


def _near(constraint: Constraint, offered: Sequence[Attributes]) -> str:
    """Suggests a similar key if no worker has this one, otherwise a similar value of it."""
    keys = _keys(offered)
    if constraint.key not in keys:
        return nearest(constraint.key, keys) or ""
    if constraint.op is not Op.EQ:
        return ""
    values = {attributes[constraint.key]: None for attributes in offered if constraint.key in attributes}
    return nearest(constraint.values[0], values) or ""


def _keys(offered: Sequence[Attributes]) -> list[str]:
    return sorted({key for attributes in offered for key in attributes})
