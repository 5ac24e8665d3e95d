"""The words of iris: ids, specs, states and their tables, resources, constraints, reasons, views.

Pure: records and rules about single records. No clock, no network, no store; deciding over many records is `decide`. Names load
when first used: a client needs few of them.
"""

from typing import TYPE_CHECKING

from neorion.keel.base import late

if TYPE_CHECKING:
    from neorion.iris.model.constraint import Attributes, Constraint, Op
    from neorion.iris.model.ids import AttemptId, Digest, JobId, JobName, SliceId, WorkerId
    from neorion.iris.model.pending_reason import Reason, WaitCode
    from neorion.iris.model.quota import Cap, Caps
    from neorion.iris.model.resources import Resources
    from neorion.iris.model.spec import Band, Budget, Call, Command, Environment, JobSpec, Limits, Placement
    from neorion.iris.model.state import (
        ATTEMPT,
        JOB,
        SLICE,
        TASK,
        WORKER,
        AttemptState,
        Cause,
        EndKind,
        JobState,
        SliceState,
        StopCause,
        TaskState,
        WorkerState,
    )
    from neorion.iris.model.view import (
        ClusterView,
        GroupView,
        JobView,
        Patience,
        RunningView,
        SliceView,
        Trouble,
        TroubleKind,
        WorkerShape,
        WorkerView,
    )

__all__ = [
    "ATTEMPT",
    "JOB",
    "SLICE",
    "TASK",
    "WORKER",
    "AttemptId",
    "AttemptState",
    "Attributes",
    "Band",
    "Budget",
    "Call",
    "Cap",
    "Caps",
    "Cause",
    "ClusterView",
    "Command",
    "Constraint",
    "Digest",
    "EndKind",
    "Environment",
    "GroupView",
    "JobId",
    "JobName",
    "JobSpec",
    "JobState",
    "JobView",
    "Limits",
    "Op",
    "Patience",
    "Placement",
    "Reason",
    "Resources",
    "RunningView",
    "SliceId",
    "SliceState",
    "SliceView",
    "StopCause",
    "TaskState",
    "Trouble",
    "TroubleKind",
    "WaitCode",
    "WorkerId",
    "WorkerShape",
    "WorkerState",
    "WorkerView",
]

__getattr__ = late(
    __name__,
    {
        "quota": ("Cap", "Caps"),
        "constraint": ("Attributes", "Constraint", "Op"),
        "ids": ("AttemptId", "Digest", "JobId", "JobName", "SliceId", "WorkerId"),
        "pending_reason": ("Reason", "WaitCode"),
        "resources": ("Resources",),
        "spec": ("Band", "Budget", "Call", "Command", "Environment", "JobSpec", "Limits", "Placement"),
        "state": (
            "ATTEMPT",
            "JOB",
            "SLICE",
            "TASK",
            "WORKER",
            "AttemptState",
            "Cause",
            "EndKind",
            "JobState",
            "SliceState",
            "StopCause",
            "TaskState",
            "WorkerState",
        ),
        "view": (
            "ClusterView",
            "GroupView",
            "JobView",
            "Patience",
            "RunningView",
            "SliceView",
            "Trouble",
            "TroubleKind",
            "WorkerShape",
            "WorkerView",
        ),
    },
)
