"""Why there is no room: the first thing that stands in the way, with what was asked for and what there is."""

from collections.abc import Sequence

from neorion.iris.decide.worker_table import SLICE, WORKER, RequestClass, WorkerTable
from neorion.iris.model import Attributes, Constraint, Op, PendingCode, PendingReason
from neorion.keel.base import nearest

# The scarcest first: a job that lacks GPUs and memory is told about the GPUs.
_DIMENSIONS = (
    (3, PendingCode.GPU_SHORT),
    (0, PendingCode.CPU_SHORT),
    (1, PendingCode.MEMORY_SHORT),
    (2, PendingCode.DISK_SHORT),
)


class FreeCapacity:
    """What a pool has free when nothing more is placed: looked at once for all kinds that may use the same workers."""

    def __init__(self, pool: WorkerTable) -> None:
        self.pool = pool
        self._bounds: dict[int, list[tuple[int, int]]] = {}

    def bounds(self, spots: list[int]) -> list[tuple[int, int]]:
        """The least and the most that any of these workers has of each thing."""
        # Kinds with the same constraints share one list, which lives as long as the pool.
        bounds = self._bounds.get(id(spots))
        if bounds is None:
            columns = zip(*(self.pool.free[spot] for spot in spots), strict=True)
            bounds = self._bounds[id(spots)] = [(min(column), max(column)) for column in columns]
        return bounds


def why_no_room(offers: FreeCapacity, kind: RequestClass, tasks: int) -> PendingReason | None:
    """None if there is room after all."""
    reason = why_not_one(offers, kind)
    pool = offers.pool
    gang = kind.placement.gang
    if reason is not None or not gang:
        return reason
    best = max(sum(pool.room(kind, spot, tasks) for spot in row.worker_indexes) for row in kind.rows)
    return PendingReason(PendingCode.GANG_SHORT, tasks, best, gang) if best < tasks else None


def why_not_one(offers: FreeCapacity, kind: RequestClass) -> PendingReason | None:
    """Why not even one task of this kind has room."""
    pool, gang = offers.pool, kind.placement.gang
    if not pool.workers:
        return PendingReason(PendingCode.NO_WORKERS)
    if not kind.row.worker_indexes:
        return _nobody_eligible(pool, kind)
    if gang and not kind.rows:
        keys = _keys([worker.attributes for worker in pool.workers])
        return PendingReason(
            PendingCode.GANG_KEY, subject=gang, near=nearest(gang, [*keys, SLICE, WORKER]) or ""
        )
    return _shortage(offers, kind)


def _shortage(offers: FreeCapacity, kind: RequestClass) -> PendingReason | None:
    """The first thing of which nobody has enough who has enough of those before it."""
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


def _nobody_eligible(pool: WorkerTable, kind: RequestClass) -> PendingReason:
    required = [constraint for constraint in kind.placement.constraints if constraint.required]
    everybody = [worker.attributes for worker in pool.workers]
    for constraint in required:
        if not any(constraint.holds(attributes) for attributes in everybody):
            near = _near(constraint, everybody)
            return PendingReason(PendingCode.CONSTRAINT, subject=str(constraint), near=near)
    variant = kind.resources.gpu_variant if kind.resources.gpus else ""
    known = {worker.total.gpu_variant: None for worker in pool.workers if worker.total.gpus}
    if variant and variant not in known:
        return PendingReason(PendingCode.GPU_VARIANT, subject=variant, near=nearest(variant, known) or "")
    wishes = [str(constraint) for constraint in required] + ([f"{variant} GPUs"] if variant else [])
    return PendingReason(PendingCode.CONSTRAINT, subject=" with ".join(wishes))


def _near(constraint: Constraint, everybody: Sequence[Attributes]) -> str:
    """What may have been meant: another key if nobody has this one, or else another value of it."""
    keys = _keys(everybody)
    if constraint.key not in keys:
        return nearest(constraint.key, keys) or ""
    if constraint.op is not Op.EQ:
        return ""
    values = {attributes[constraint.key]: None for attributes in everybody if constraint.key in attributes}
    return nearest(constraint.values[0], values) or ""


def _keys(everybody: Sequence[Attributes]) -> list[str]:
    return sorted({key for attributes in everybody for key in attributes})
