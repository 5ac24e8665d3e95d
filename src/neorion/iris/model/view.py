"""What a decision sees: the cluster at one moment, as values."""

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
    """A worker that takes work now, and what is left of it."""

    id: WorkerId
    slice: SliceId
    attributes: Attributes
    total: Resources
    free: Resources


@dataclass(frozen=True, slots=True)
class JobView:
    """A job with tasks that wait. `waiting` are their indexes, in the order in which they should start."""

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
    """An attempt that holds a place. One that is `stopping` gives it back soon and cannot lose it twice."""

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
    """Everything the scheduler looks at. `caps` limits what a user has at once."""

    workers: Sequence[WorkerView]
    jobs: Sequence[JobView]
    running: Sequence[RunningView] = ()
    caps: UserQuotas = field(default=UserQuotas())


@dataclass(frozen=True, slots=True)
class WorkerShape:
    """Workers that exist or could be created: what one has, how many a slice has, and how many slices there can be."""

    total: Resources
    attributes: Attributes
    per_slice: int = 1
    slices: int = 1


class ScaleFailureKind(StrEnum):
    """Why a scale group got no slice. Told apart, because they pass at different speeds."""

    FAILED = "failed"
    QUOTA = "quota"
    NO_QUOTA = "no_quota"
    NO_CAPACITY = "no_capacity"


@dataclass(frozen=True, slots=True)
class ScaleFailure:
    """What went wrong in a scale group since it last got a slice: `times` in a row, `at` the last time."""

    kind: ScaleFailureKind
    times: int
    at: Instant


@dataclass(frozen=True, slots=True)
class SliceView:
    """`ready` is when its workers had joined; `idle` since when nothing runs on it, or None while something does.

    `short` is since when it lacks a worker that it had; None while it is whole. `drained` is since when all of its workers
    are given nothing new, because somebody wants it so.
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
    """How patient a scale group is.

    It grows for demand that lasts `up`, gives back what is idle for `down`, leaves a new slice alone for `grace`, and gives
    a slice that has not joined within `boot`, or that lacks a worker for longer than `join` while nothing runs on it, up for failed.
    """

    up: Duration = _UP
    down: Duration = _DOWN
    grace: Duration = _GRACE
    boot: Duration = _BOOT
    join: Duration = _JOIN


@dataclass(frozen=True, slots=True)
class GroupView:
    """A scale group: `shape` says what its slices are and how many it may have; a lower `priority` is asked first."""

    name: str
    priority: int
    min_slices: int
    shape: WorkerShape
    patience: ScaleDelays = ScaleDelays()
    slices: Sequence[SliceView] = ()
    trouble: ScaleFailure | None = None
