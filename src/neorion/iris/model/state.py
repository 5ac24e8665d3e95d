"""States of jobs, tasks, attempts, workers and slices, and their allowed transitions."""

from enum import StrEnum

from neorion.keel.table import TransitionTable


class JobState(StrEnum):
    """State of a job, derived from its tasks."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


class TaskState(StrEnum):
    """State of a task, which waits, runs as one attempt at a time, and ends once."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in (TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED)


class AttemptState(StrEnum):
    """State of an attempt. STOPPING keeps the worker's resources until the worker reports its end."""

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
    """Kind of an attempt's end. Kinds differ in the retries they use and in their messages.

    NOT_STARTED: the task's own code never ran, because of its spec. LOST: it ended without its own fault, or its end is
    unknown. NO_ROOM: its worker's disk had no room for its files, and another worker's may have.
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
    """Cause of a requested stop of an attempt; NONE if there is none."""

    NONE = "none"
    PREEMPTED = "preempted"
    GANG = "gang"
    CANCELLED = "cancelled"
    JOB_OVER = "job_over"


class TaskReason(StrEnum):
    """Reason for the current state of a task."""

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
    """State of a worker. A silent one gets no work; a lost one has certainly ended its tasks."""

    READY = "ready"
    SILENT = "silent"
    LOST = "lost"


class SliceState(StrEnum):
    """State of a slice, as in the platform's documents."""

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
        (JobState.RUNNING, JobState.PENDING): "no task runs, some wait again",
        (JobState.RUNNING, JobState.SUCCEEDED): "every task succeeded",
        (JobState.RUNNING, JobState.FAILED): "more tasks failed than allowed",
        (JobState.RUNNING, JobState.CANCELLED): "cancelled",
    },
)

TASK = TransitionTable(
    "task",
    TaskState.PENDING,
    {
        (TaskState.PENDING, TaskState.RUNNING): "assigned to a worker",
        (TaskState.PENDING, TaskState.FAILED): "waited longer than its limit",
        (TaskState.PENDING, TaskState.CANCELLED): "cancelled",
        (TaskState.RUNNING, TaskState.PENDING): "retried",
        (TaskState.RUNNING, TaskState.SUCCEEDED): "succeeded",
        (TaskState.RUNNING, TaskState.FAILED): "failed without retries left",
        (TaskState.RUNNING, TaskState.CANCELLED): "cancelled",
    },
)

ATTEMPT = TransitionTable(
    "attempt",
    AttemptState.ASSIGNED,
    {
        (AttemptState.ASSIGNED, AttemptState.BUILDING): "the worker prepares its environment",
        (AttemptState.ASSIGNED, AttemptState.RUNNING): "the worker started it",
        (AttemptState.ASSIGNED, AttemptState.STOPPING): "stop requested",
        (AttemptState.ASSIGNED, AttemptState.SUCCEEDED): "ended before its start was reported",
        (AttemptState.ASSIGNED, AttemptState.FAILED): "failed before its start was reported",
        (AttemptState.ASSIGNED, AttemptState.LOST): "its worker is lost",
        (AttemptState.BUILDING, AttemptState.RUNNING): "the worker started it",
        (AttemptState.BUILDING, AttemptState.STOPPING): "stop requested",
        (AttemptState.BUILDING, AttemptState.SUCCEEDED): "ended before its start was reported",
        (AttemptState.BUILDING, AttemptState.FAILED): "its environment could not be built",
        (AttemptState.BUILDING, AttemptState.LOST): "its worker is lost",
        (AttemptState.RUNNING, AttemptState.STOPPING): "stop requested",
        (AttemptState.RUNNING, AttemptState.SUCCEEDED): "succeeded",
        (AttemptState.RUNNING, AttemptState.FAILED): "failed",
        (AttemptState.RUNNING, AttemptState.LOST): "its worker is lost",
        (AttemptState.ASSIGNED, AttemptState.STOPPED): "ended by its worker",
        (AttemptState.BUILDING, AttemptState.STOPPED): "ended by its worker",
        (AttemptState.RUNNING, AttemptState.STOPPED): "ended by its worker",
        (AttemptState.STOPPING, AttemptState.STOPPED): "ended by its worker",
        (AttemptState.STOPPING, AttemptState.SUCCEEDED): "succeeded before it was stopped",
        (AttemptState.STOPPING, AttemptState.FAILED): "failed before it was stopped",
        (AttemptState.STOPPING, AttemptState.LOST): "its worker is lost",
    },
)

WORKER = TransitionTable(
    "worker",
    WorkerState.READY,
    {
        (WorkerState.READY, WorkerState.SILENT): "missed its heartbeats",
        (WorkerState.SILENT, WorkerState.READY): "reported again in time",
        (WorkerState.SILENT, WorkerState.LOST): "silent for longer than its tasks may run without contact",
        (WorkerState.READY, WorkerState.LOST): "its machine is gone",
    },
)

SLICE = TransitionTable(
    "slice",
    SliceState.CREATING,
    {
        (SliceState.CREATING, SliceState.BOOTSTRAPPING): "its machines exist",
        (SliceState.CREATING, SliceState.FAILED): "could not be created",
        (SliceState.CREATING, SliceState.DELETING): "no longer needed",
        (SliceState.BOOTSTRAPPING, SliceState.READY): "all its workers joined",
        (SliceState.BOOTSTRAPPING, SliceState.FAILED): "its workers did not join in time",
        (SliceState.BOOTSTRAPPING, SliceState.DELETING): "no longer needed",
        (SliceState.READY, SliceState.FAILED): "lost a worker",
        (SliceState.READY, SliceState.DELETING): "idle for long enough",
        (SliceState.FAILED, SliceState.DELETING): "cleaned up",
    },
)
