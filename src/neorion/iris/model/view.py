"""What a decision sees: the cluster at one moment, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from neorion.iris.model.constraint import Attributes
from neorion.iris.model.ids import AttemptId, JobId, SliceId, WorkerId
from neorion.iris.model.resources import Resources
from neorion.iris.model.spec import Band, Placement
from neorion.keel.base import Instant


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
    band: Band
    resources: Resources
    placement: Placement
    submitted: Instant
    waiting: Sequence[int]
    # Workers that already run a task of this job, for spreading.
    beside: Sequence[WorkerId] = ()


@dataclass(frozen=True, slots=True)
class RunningView:
    """An attempt that holds a place and could lose it."""

    attempt: AttemptId
    job: JobId
    worker: WorkerId
    user: str
    band: Band
    resources: Resources
    gang: bool
    started: Instant


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Everything the scheduler looks at. `caps` limits how many tasks a user runs at once."""

    workers: Sequence[WorkerView]
    jobs: Sequence[JobView]
    running: Sequence[RunningView] = ()
    caps: Mapping[str, int] = field(default_factory=dict[str, int])
    cap_default: int = 0
