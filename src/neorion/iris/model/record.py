"""Records of the controller. Records are values: a change is a new record."""

from msgspec import Struct, field

from neorion.iris.model.ids import AttemptId, Digest, JobId, SliceId, WorkerId
from neorion.iris.model.resources import Resources
from neorion.iris.model.spec import JobSpec
from neorion.iris.model.state import (
    AttemptState,
    JobState,
    SliceState,
    StopCause,
    TaskReason,
    TaskState,
    WorkerState,
)
from neorion.iris.model.usage import Usage
from neorion.keel.base import Instant


class Outcome(Struct, frozen=True, omit_defaults=True):
    """End of an attempt, a task or a job. `code` is an exit code or a signal; `result` names a pickled value or error."""

    cause: TaskReason | None = None
    code: int = 0
    message: str = ""
    result: Digest = Digest("")
    result_bytes: int = 0


class Job(Struct, frozen=True, omit_defaults=True):
    """A submitted job. `key` is chosen by the client, so that a repeated submission is the same job.

    `owner` is the attempt that submitted it, if a task did. The job ends with that attempt.
    """

    id: JobId
    spec: JobSpec
    submitted: Instant
    key: str = ""
    content: Digest = Digest("")
    parent: JobId = JobId("")
    owner: AttemptId = AttemptId("")
    state: JobState = JobState.PENDING
    ended: Instant | None = None
    ending: Outcome = Outcome()

    @property
    def dedup_key(self) -> tuple[str, str]:
        """The key and its scope: the user, or the parent job if a task submitted it."""
        return (self.parent if self.owner else self.spec.name.user, self.key)


class Task(Struct, frozen=True, omit_defaults=True):
    """One replica of a job. `since` is the time of its last change; only `attempt`, the current one, may set its result."""

    job: JobId
    index: int
    since: Instant
    state: TaskState = TaskState.PENDING
    attempt: AttemptId = AttemptId("")
    tries: int = 0
    failures: int = 0
    losses: int = 0
    ending: Outcome = Outcome()


class Attempt(Struct, frozen=True, omit_defaults=True):
    """One attempt at a task on one worker. `secret` authenticates its calls."""

    id: AttemptId
    job: JobId
    index: int
    number: int
    worker: WorkerId
    assigned: Instant
    state: AttemptState = AttemptState.ASSIGNED
    started: Instant | None = None
    ended: Instant | None = None
    ports: tuple[int, ...] = ()
    # Numbers of its GPUs on the worker.
    gpus: tuple[int, ...] = ()
    # Rendezvous address of a gang: host and port of its first task.
    rendezvous: str = field(default="", name="meet")
    stop_cause: StopCause = field(default=StopCause.NONE, name="doom")
    secret: str = ""
    ending: Outcome = Outcome()
    usage: Usage = Usage()


class Worker(Struct, frozen=True, omit_defaults=True):
    """A worker, from its registration to its end."""

    id: WorkerId
    slice: SliceId
    host: str
    total: Resources
    attributes: dict[str, str]
    joined: Instant
    state: WorkerState = WorkerState.READY
    draining: bool = False
    # Its token is no longer valid.
    revoked: bool = False


class Slice(Struct, frozen=True, omit_defaults=True):
    """Machines created together."""

    id: SliceId
    group: str
    since: Instant
    state: SliceState = SliceState.CREATING
    message: str = ""
    # Its token is no longer valid for joining.
    revoked: bool = False


class AuditEntry(Struct, frozen=True, omit_defaults=True):
    """A recorded call: caller, method, target and outcome, which is "done" or an error code."""

    number: int
    when: Instant
    who: str
    what: str
    target: str
    outcome: str
