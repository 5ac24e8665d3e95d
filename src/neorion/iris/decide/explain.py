"""Why there is no room: the first thing that stands in the way, with what was asked for and what there is."""

from collections.abc import Sequence

from neorion.iris.decide.pool import SLICE, WORKER, Kind, Pool
from neorion.iris.model import Attributes, Constraint, Op, Reason, WaitCode
from neorion.keel.base import nearest

# The scarcest first: a job that lacks GPUs and memory is told about the GPUs.
_DIMENSIONS = (
    (3, WaitCode.GPU_SHORT),
    (0, WaitCode.CPU_SHORT),
    (1, WaitCode.MEMORY_SHORT),
    (2, WaitCode.DISK_SHORT),
)


def why_no_room(pool: Pool, kind: Kind, tasks: int) -> Reason | None:
    """None if there is room after all."""
    reason = why_not_one(pool, kind)
    gang = kind.placement.gang
    if reason is not None or not gang:
        return reason
    best = max(sum(pool.room(kind, spot, tasks) for spot in row.spots) for row in kind.rows)
    return Reason(WaitCode.GANG_SHORT, tasks, best, gang) if best < tasks else None


def why_not_one(pool: Pool, kind: Kind) -> Reason | None:
    """Why not even one task of this kind has room."""
    gang = kind.placement.gang
    if not pool.workers:
        return Reason(WaitCode.NO_WORKERS)
    if not kind.row.spots:
        return _nobody_eligible(pool, kind)
    if gang and not kind.rows:
        keys = _keys([worker.attributes for worker in pool.workers])
        return Reason(WaitCode.GANG_KEY, subject=gang, near=nearest(gang, [*keys, SLICE, WORKER]) or "")
    offers = [pool.free[spot] for spot in kind.row.spots]
    for dimension, code in _DIMENSIONS:
        need = kind.needs[dimension]
        enough = [offer for offer in offers if offer[dimension] >= need]
        if not enough:
            return Reason(code, need, max(0, *(offer[dimension] for offer in offers)))
        offers = enough
    return None


def _nobody_eligible(pool: Pool, kind: Kind) -> Reason:
    required = [constraint for constraint in kind.placement.constraints if constraint.required]
    everybody = [worker.attributes for worker in pool.workers]
    for constraint in required:
        if not any(constraint.holds(attributes) for attributes in everybody):
            near = _near(constraint, everybody)
            return Reason(WaitCode.CONSTRAINT, subject=str(constraint), near=near)
    variant = kind.resources.gpu_variant if kind.resources.gpus else ""
    known = {worker.total.gpu_variant: None for worker in pool.workers if worker.total.gpus}
    if variant and variant not in known:
        return Reason(WaitCode.GPU_VARIANT, subject=variant, near=nearest(variant, known) or "")
    wishes = [str(constraint) for constraint in required] + ([f"{variant} GPUs"] if variant else [])
    return Reason(WaitCode.CONSTRAINT, subject=" with ".join(wishes))


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
