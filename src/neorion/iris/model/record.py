"""What the controller remembers of each thing. Records are values: a change is a new record."""

from msgspec import Struct

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
    """How an attempt, a task or a job ended: `code` is an exit code or a signal, `result` names the pickled value or exception."""

    cause: TaskReason | None = None
    code: int = 0
    message: str = ""
    result: Digest = Digest("")
    result_bytes: int = 0


class Job(Struct, frozen=True, omit_defaults=True):
    """One submission. `key` is the client's name for it, so that a repeated submission is the same job.

    `owner` is the attempt that submitted it, if a task did: the job does not outlive it.
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
        """Its key, and whose that is: the same word is another key for another user, or in the tasks of another job."""
        return (self.parent if self.owner else self.spec.name.user, self.key)


class Task(Struct, frozen=True, omit_defaults=True):
    """One replica of a job. `since` is when it came into its state; `attempt` is the one that counts, and no other may publish."""

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
    """One try at a task on one worker. `doom` is why it was told to stop; `secret` is what it shows to us while it lives."""

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
    # Which of the worker's GPUs are its own, by their numbers.
    gpus: tuple[int, ...] = ()
    # Where a gang meets: its first task's host and port.
    meet: str = ""
    doom: StopCause = StopCause.NONE
    secret: str = ""
    ending: Outcome = Outcome()
    usage: Usage = Usage()


class Worker(Struct, frozen=True, omit_defaults=True):
    """One life of a worker process."""

    id: WorkerId
    slice: SliceId
    host: str
    total: Resources
    attributes: dict[str, str]
    joined: Instant
    state: WorkerState = WorkerState.READY
    draining: bool = False
    # Its token is worth nothing any more.
    revoked: bool = False


class Slice(Struct, frozen=True, omit_defaults=True):
    """Machines asked for together."""

    id: SliceId
    group: str
    since: Instant
    state: SliceState = SliceState.CREATING
    message: str = ""
    # Nobody joins with its token any more.
    revoked: bool = False


class AuditEntry(Struct, frozen=True, omit_defaults=True):
    """A call that changes something: who made it, about what, and what came of it, "done" or the code of an error."""

    number: int
    when: Instant
    who: str
    what: str
    target: str
    outcome: str
