"""Views: the cluster at one moment as values, which are the input of decisions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from neorion.iris.model.constraint import Attributes
from neorion.iris.model.ids import AttemptId, JobId, SliceId, WorkerId
from neorion.iris.model.quota import UserQuotas
from neorion.iris.model.resources import Resources
from neorion.iris.model.spec import Placement, PriorityBand
from neorion.iris.model.state import SliceState
from neorion.keel.base import Duration, Instant


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker that accepts work, with its free resources."""

    id: WorkerId
    slice: SliceId
    attributes: Attributes
    total: Resources
    free: Resources


@dataclass(frozen=True, slots=True)
class JobView:
    """A job with waiting tasks. `waiting` are their indexes in the order of start."""

    id: JobId
    user: str
    band: PriorityBand
    resources: Resources
    placement: Placement
    submitted: Instant
    waiting: Sequence[int]
    # Workers that already run a task of this job, for spreading.
    beside: Sequence[WorkerId] = ()


@dataclass(frozen=True, slots=True)
class RunningView:
    """An attempt that occupies a worker. One that is `stopping` frees it soon and cannot be preempted."""

    attempt: AttemptId
    job: JobId
    worker: WorkerId
    user: str
    band: PriorityBand
    resources: Resources
    gang: bool
    started: Instant
    stopping: bool = False


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Input of the scheduler. `caps` are the quotas of users."""

    workers: Sequence[WorkerView]
    jobs: Sequence[JobView]
    running: Sequence[RunningView] = ()
    caps: UserQuotas = field(default=UserQuotas())


@dataclass(frozen=True, slots=True)
class WorkerShape:
    """Workers that exist or can be created: resources of each, number per slice, and number of slices."""

    total: Resources
    attributes: Attributes
    per_slice: int = 1
    slices: int = 1


class ScaleFailureKind(StrEnum):
    """Kind of a failure to create a slice. The kinds differ in their pauses."""

    FAILED = "failed"
    QUOTA = "quota"
    NO_QUOTA = "no_quota"
    NO_CAPACITY = "no_capacity"


@dataclass(frozen=True, slots=True)
class ScaleFailure:
    """Failures of a scale group since its last new slice: `times` in a row, the last one `at`."""

    kind: ScaleFailureKind
    times: int
    at: Instant


@dataclass(frozen=True, slots=True)
class SliceView:
    """A slice. `ready` is when its workers had joined; `idle` is since when it runs no task, or None.

    `short` is since when it lacks a worker that it had; None if it is complete. `drained` is since when all of its workers
    are drained and get no new tasks.
    """

    id: SliceId
    state: SliceState
    created: Instant
    ready: Instant | None = None
    idle: Instant | None = None
    short: Instant | None = None
    drained: Instant | None = None


_UP, _DOWN, _GRACE, _BOOT, _JOIN = (Duration.of(minutes=span) for span in (1, 10, 30, 40, 10))


@dataclass(frozen=True, slots=True)
class ScaleDelays:
    """Delays of a scale group.

    It grows for demand that lasts `up`, deletes slices that are idle for `down`, but not within `grace` of their start.
    A slice fails that has not joined within `boot`, or that lacks a worker for `join` while it runs no task.
    """

    up: Duration = _UP
    down: Duration = _DOWN
    grace: Duration = _GRACE
    boot: Duration = _BOOT
    join: Duration = _JOIN


@dataclass(frozen=True, slots=True)
class GroupView:
    """A scale group. `shape` describes its slices and their maximum number; a lower `priority` is used first."""

    name: str
    priority: int
    min_slices: int
    shape: WorkerShape
    patience: ScaleDelays = ScaleDelays()
    slices: Sequence[SliceView] = ()
    trouble: ScaleFailure | None = None
