"""Plan of one scheduling pass, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from neorion.iris.model import AttemptId, JobId, PendingReason, Placement, Resources, SliceId, WorkerId
from neorion.keel.base import Instant

_NO_ROOM: Mapping[str, int] = MappingProxyType({})


# Named tuples, because a pass makes tens of thousands and dataclasses take three times as long.
class Assignment(NamedTuple):
    """Assignment of a task to a worker."""

    job: JobId
    task: int
    worker: WorkerId


class UnmetDemand(NamedTuple):
    """Tasks without room and since when they wait: the input of the autoscaler.

    For a gang across slices, `there` is how many of its tasks fit now, per value of the attribute it shares.
    """

    job: JobId
    resources: Resources
    placement: Placement
    tasks: int
    since: Instant
    there: Mapping[str, int] = _NO_ROOM


@dataclass(frozen=True, slots=True)
class Preemption:
    """Stop this attempt, so that this job can start."""

    attempt: AttemptId
    job: JobId


@dataclass(frozen=True, slots=True)
class Reservation:
    """These workers accept no tasks of this job's band or below until they have room for this job."""

    job: JobId
    place: str
    workers: tuple[WorkerId, ...]


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """Result of one scheduling pass.

    `claims` are future assignments, made when the preempted attempts have ended; they are not carried out now, but
    the room is not free. `promised` are slices with an assignment, a claim or a reservation, so they are not idle
    whatever their records state. `wake_at` is when the same view would lead to a different plan.
    """

    assignments: Sequence[Assignment]
    preemptions: Sequence[Preemption]
    claims: Sequence[Assignment]
    holds: Sequence[Reservation]
    reasons: Mapping[JobId, PendingReason]
    demand: Sequence[UnmetDemand]
    promised: frozenset[SliceId]
    wake_at: Instant | None
