"""Model of iris: ids, specs, states and their tables, resources, constraints, reasons and views.

Pure: records and rules about single records, without clock, network or store. Decisions over many records are in
`decide`. Each name is imported when it is first used, because a client needs few of them.
"""

from typing import TYPE_CHECKING

from neorion.keel.base import lazy_exports

if TYPE_CHECKING:
    from neorion.iris.model.constraint import Attributes, Constraint, Op
    from neorion.iris.model.ids import AttemptId, Digest, JobId, JobName, SliceId, WorkerId
    from neorion.iris.model.pending_reason import PendingCode, PendingReason
    from neorion.iris.model.quota import Quota, UserQuotas
    from neorion.iris.model.resources import Resources
    from neorion.iris.model.spec import (
        Command,
        FunctionCall,
        JobSpec,
        Placement,
        PriorityBand,
        RetryBudget,
        TaskEnvironment,
        TimeLimits,
    )
    from neorion.iris.model.state import (
        ATTEMPT,
        JOB,
        SLICE,
        TASK,
        WORKER,
        AttemptState,
        ExitKind,
        JobState,
        SliceState,
        StopCause,
        TaskReason,
        TaskState,
        WorkerState,
    )
    from neorion.iris.model.view import (
        ClusterView,
        GroupView,
        JobView,
        RunningView,
        ScaleDelays,
        ScaleFailure,
        ScaleFailureKind,
        SliceView,
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
    "ClusterView",
    "Command",
    "Constraint",
    "Digest",
    "ExitKind",
    "FunctionCall",
    "GroupView",
    "JobId",
    "JobName",
    "JobSpec",
    "JobState",
    "JobView",
    "Op",
    "PendingCode",
    "PendingReason",
    "Placement",
    "PriorityBand",
    "Quota",
    "Resources",
    "RetryBudget",
    "RunningView",
    "ScaleDelays",
    "ScaleFailure",
    "ScaleFailureKind",
    "SliceId",
    "SliceState",
    "SliceView",
    "StopCause",
    "TaskEnvironment",
    "TaskReason",
    "TaskState",
    "TimeLimits",
    "UserQuotas",
    "WorkerId",
    "WorkerShape",
    "WorkerState",
    "WorkerView",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "quota": ("Quota", "UserQuotas"),
        "constraint": ("Attributes", "Constraint", "Op"),
        "ids": ("AttemptId", "Digest", "JobId", "JobName", "SliceId", "WorkerId"),
        "pending_reason": ("PendingReason", "PendingCode"),
        "resources": ("Resources",),
        "spec": (
            "PriorityBand",
            "RetryBudget",
            "FunctionCall",
            "Command",
            "TaskEnvironment",
            "JobSpec",
            "TimeLimits",
            "Placement",
        ),
        "state": (
            "ATTEMPT",
            "JOB",
            "SLICE",
            "TASK",
            "WORKER",
            "AttemptState",
            "TaskReason",
            "ExitKind",
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
            "ScaleDelays",
            "RunningView",
            "SliceView",
            "ScaleFailure",
            "ScaleFailureKind",
            "WorkerShape",
            "WorkerView",
        ),
    },
)
