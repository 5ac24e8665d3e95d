"""What a pass decided, as values that leave no choice open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from neorion.iris.model import AttemptId, JobId, PendingReason, Placement, Resources, SliceId, WorkerId
from neorion.keel.base import Instant

_NOWHERE: Mapping[str, int] = MappingProxyType({})


# Assignments and demands come in tens of thousands per pass, and named tuples are made in a third of the time.
class Assignment(NamedTuple):
    """A task of a job runs on this worker from now on."""

    job: JobId
    task: int
    worker: WorkerId


class UnmetDemand(NamedTuple):
    """Tasks for which there was no room, since when they wait, for whoever can make room.

    Of a gang across slices, `there` is how many of its tasks would find room now, by the value of the attribute it shares.
    """

    job: JobId
    resources: Resources
    placement: Placement
    tasks: int
    since: Instant
    there: Mapping[str, int] = _NOWHERE


@dataclass(frozen=True, slots=True)
class Preemption:
    """Stop this attempt, so that this job can start."""

    attempt: AttemptId
    job: JobId


@dataclass(frozen=True, slots=True)
class Reservation:
    """These workers take nothing of this job's band or below until they have room for this job."""

    job: JobId
    place: str
    workers: tuple[WorkerId, ...]


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """One pass of the scheduler.

    `claims` are the places that jobs will get when what stops there now is gone; they are not to be carried out, but they
    are not free either. `promised` are the slices on which somebody was given a place by an assignment, a claim or a
    hold: whatever their records say, they are not idle. `wake_at` is when the same view would be decided differently.
    """

    assignments: Sequence[Assignment]
    preemptions: Sequence[Preemption]
    claims: Sequence[Assignment]
    holds: Sequence[Reservation]
    reasons: Mapping[JobId, PendingReason]
    demand: Sequence[UnmetDemand]
    promised: frozenset[SliceId]
    wake_at: Instant | None
