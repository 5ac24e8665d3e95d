"""Feasibility check at submission: refuses jobs that can never run on this cluster."""

from collections.abc import Iterable
from dataclasses import replace

from neorion.iris.decide.pending_reason import FreeCapacity, why_not_one
from neorion.iris.decide.worker_table import SLICE, WORKER, RequestClass, WorkerTable
from neorion.iris.model import (
    PendingCode,
    PendingReason,
    Placement,
    Resources,
    SliceId,
    WorkerId,
    WorkerShape,
    WorkerView,
)


def feasible(
    resources: Resources, placement: Placement, replicas: int, shapes: Iterable[WorkerShape]
) -> PendingReason | None:
    """None if the job fits on empty workers of these shapes, otherwise the reason."""
    offered = list(shapes)
    pool = WorkerTable(_empty_worker(number, shape) for number, shape in enumerate(offered))
    kind = pool.kind(resources, placement)
    reason = why_not_one(FreeCapacity(pool), kind)
    if reason is None and placement.gang:
        best = _largest_gang(pool, kind, offered)
        if best < replicas:
            reason = PendingReason(PendingCode.GANG_SHORT, replicas, best, placement.gang)
    return None if reason is None else replace(reason, never=True)


def _empty_worker(number: int, shape: WorkerShape) -> WorkerView:
    """Empty worker of a shape. A shape that can be created stands for slices of its own."""
    name = f"{number:06}"
    home = SliceId(shape.attributes.get(SLICE, name))
    return WorkerView(WorkerId(name), home, shape.attributes, shape.total, shape.total)


def _largest_gang(pool: WorkerTable, kind: RequestClass, shapes: list[WorkerShape]) -> int:
    """Largest number of tasks that workers with one value of the gang's attribute can hold."""
    best = 0
    for row in kind.rows:
        room = 0
        for spot in row.worker_indexes:
            shape = shapes[int(pool.workers[spot].id)]
            alike = {WORKER: 1, SLICE: shape.per_slice}.get(
                kind.placement.gang, shape.per_slice * shape.slices
            )
            room += alike * pool.room(kind, spot, 1 << 31)
        best = max(best, room)
    return best
