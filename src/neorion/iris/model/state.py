"""The states of everything that moves, and the moves allowed."""

from enum import StrEnum

from neorion.keel.table import TransitionTable


class JobState(StrEnum):
    """A job's state follows from its tasks."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


class TaskState(StrEnum):
    """A task waits, runs as one attempt at a time, and ends once."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in (TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED)


class AttemptState(StrEnum):
    """STOPPING holds the worker's resources until the worker says that nothing is left of the attempt."""

    ASSIGNED = "assigned"
    BUILDING = "building"
    RUNNING = "running"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"
    STOPPED = "stopped"

    @property
    def ended(self) -> bool:
        return self in (AttemptState.SUCCEEDED, AttemptState.FAILED, AttemptState.LOST, AttemptState.STOPPED)


class ExitKind(StrEnum):
    """How an attempt ended. Told apart, because they are charged and explained differently.

    NOT_STARTED: the task's own code never ran, for a reason that lies in the order. LOST: it was ended, or forgotten how, by
    no fault of its own. NO_ROOM: its worker's disk had none for its files, and another's may.
    """

    EXIT = "exit"
    SIGNAL = "signal"
    OUT_OF_MEMORY = "out_of_memory"
    TIMED_OUT = "timed_out"
    STOPPED = "stopped"
    NOT_STARTED = "not_started"
    LOST = "lost"
    NO_ROOM = "no_room"


class StopCause(StrEnum):
    """Why an attempt was told to stop. NONE: it was not."""

    NONE = "none"
    PREEMPTED = "preempted"
    GANG = "gang"
    CANCELLED = "cancelled"
    JOB_OVER = "job_over"


class TaskReason(StrEnum):
    """Why a task is where it is now."""

    DONE = "done"
    EXIT_CODE = "exit_code"
    SIGNAL = "signal"
    OUT_OF_MEMORY = "out_of_memory"
    RAN_TOO_LONG = "ran_too_long"
    WAITED_TOO_LONG = "waited_too_long"
    NOT_BUILT = "not_built"
    NO_ROOM = "no_room"
    WORKER_LOST = "worker_lost"
    LOST_BEFORE_START = "lost_before_start"
    PREEMPTED = "preempted"
    GANG_RESTART = "gang_restart"
    GANG_BROKEN = "gang_broken"
    CANCELLED = "cancelled"
    JOB_OVER = "job_over"


class WorkerState(StrEnum):
    """A silent worker is given no work; a lost one has certainly ended its tasks."""

    READY = "ready"
    SILENT = "silent"
    LOST = "lost"


class SliceState(StrEnum):
    """As the platform's documents name them."""

    CREATING = "CREATING"
    BOOTSTRAPPING = "BOOTSTRAPPING"
    READY = "READY"
    FAILED = "FAILED"
    DELETING = "DELETING"


JOB = TransitionTable(
    "job",
    JobState.PENDING,
    {
        (JobState.PENDING, JobState.RUNNING): "a task started",
        (JobState.PENDING, JobState.FAILED): "waited longer than its limit",
        (JobState.PENDING, JobState.CANCELLED): "cancelled",
        (JobState.RUNNING, JobState.PENDING): "no task runs any more, some wait again",
        (JobState.RUNNING, JobState.SUCCEEDED): "every task ended well",
        (JobState.RUNNING, JobState.FAILED): "more tasks failed than it allows",
        (JobState.RUNNING, JobState.CANCELLED): "cancelled",
    },
)

TASK = TransitionTable(
    "task",
    TaskState.PENDING,
    {
        (TaskState.PENDING, TaskState.RUNNING): "given to a worker",
        (TaskState.PENDING, TaskState.FAILED): "waited longer than its limit",
        (TaskState.PENDING, TaskState.CANCELLED): "cancelled",
        (TaskState.RUNNING, TaskState.PENDING): "tried again",
        (TaskState.RUNNING, TaskState.SUCCEEDED): "ended well",
        (TaskState.RUNNING, TaskState.FAILED): "failed with no tries left",
        (TaskState.RUNNING, TaskState.CANCELLED): "cancelled",
    },
)

ATTEMPT = TransitionTable(
    "attempt",
    AttemptState.ASSIGNED,
    {
        (AttemptState.ASSIGNED, AttemptState.BUILDING): "the worker prepares its environment",
        (AttemptState.ASSIGNED, AttemptState.RUNNING): "the worker started it",
        (AttemptState.ASSIGNED, AttemptState.STOPPING): "told to stop",
        (AttemptState.ASSIGNED, AttemptState.SUCCEEDED): "ended before its start was reported",
        (AttemptState.ASSIGNED, AttemptState.FAILED): "failed before its start was reported",
        (AttemptState.ASSIGNED, AttemptState.LOST): "its worker is lost",
        (AttemptState.BUILDING, AttemptState.RUNNING): "the worker started it",
        (AttemptState.BUILDING, AttemptState.STOPPING): "told to stop",
        (AttemptState.BUILDING, AttemptState.SUCCEEDED): "ended before its start was reported",
        (AttemptState.BUILDING, AttemptState.FAILED): "its environment could not be built",
        (AttemptState.BUILDING, AttemptState.LOST): "its worker is lost",
        (AttemptState.RUNNING, AttemptState.STOPPING): "told to stop",
        (AttemptState.RUNNING, AttemptState.SUCCEEDED): "ended well",
        (AttemptState.RUNNING, AttemptState.FAILED): "failed",
        (AttemptState.RUNNING, AttemptState.LOST): "its worker is lost",
        (AttemptState.ASSIGNED, AttemptState.STOPPED): "ended by its worker",
        (AttemptState.BUILDING, AttemptState.STOPPED): "ended by its worker",
        (AttemptState.RUNNING, AttemptState.STOPPED): "ended by its worker",
        (AttemptState.STOPPING, AttemptState.STOPPED): "ended by its worker",
        (AttemptState.STOPPING, AttemptState.SUCCEEDED): "ended well before it was stopped",
        (AttemptState.STOPPING, AttemptState.FAILED): "failed before it was stopped",
        (AttemptState.STOPPING, AttemptState.LOST): "its worker is lost",
    },
)

WORKER = TransitionTable(
    "worker",
    WorkerState.READY,
    {
        (WorkerState.READY, WorkerState.SILENT): "missed its heartbeats",
        (WorkerState.SILENT, WorkerState.READY): "heard again in time",
        (WorkerState.SILENT, WorkerState.LOST): "silent for longer than it may run tasks without us",
        (WorkerState.READY, WorkerState.LOST): "its machine is gone",
    },
)

SLICE = TransitionTable(
    "slice",
    SliceState.CREATING,
    {
        (SliceState.CREATING, SliceState.BOOTSTRAPPING): "its machines exist",
        (SliceState.CREATING, SliceState.FAILED): "could not be created",
        (SliceState.CREATING, SliceState.DELETING): "no longer wanted",
        (SliceState.BOOTSTRAPPING, SliceState.READY): "all its workers joined",
        (SliceState.BOOTSTRAPPING, SliceState.FAILED): "its workers did not join in time",
        (SliceState.BOOTSTRAPPING, SliceState.DELETING): "no longer wanted",
        (SliceState.READY, SliceState.FAILED): "lost a worker",
        (SliceState.READY, SliceState.DELETING): "idle for long enough",
        (SliceState.FAILED, SliceState.DELETING): "cleaned up",
    },
)
