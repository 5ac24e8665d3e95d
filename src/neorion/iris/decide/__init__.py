"""Decisions of iris: placement, preemption, what follows from the end of an attempt, and the size of scale groups.

Pure functions from a view and the time to complete plans. Nothing here reads a clock, a store or other state,
keeps state between two calls, or has an effect.
"""

from neorion.iris.decide.autoscale import Create, Delete, DeleteCause, ScalePlan, autoscale
from neorion.iris.decide.deadline import Deadlines, PendingDeadline, deadlines
from neorion.iris.decide.feasible import feasible
from neorion.iris.decide.lifecycle import (
    AttemptEnd,
    RetriesUsed,
    RetryPolicy,
    SiblingAction,
    TaskCounts,
    TaskTransition,
    cause_of,
    job_state,
    on_attempt_end,
    on_wait_timeout,
)
from neorion.iris.decide.plan import Assignment, Preemption, Reservation, SchedulePlan, UnmetDemand
from neorion.iris.decide.quota import over_quota
from neorion.iris.decide.reservation import RESERVE_AFTER
from neorion.iris.decide.scale_group import PAUSE_MAX, after_trouble, paused_until
from neorion.iris.decide.schedule import schedule

__all__ = [
    "PAUSE_MAX",
    "RESERVE_AFTER",
    "Assignment",
    "AttemptEnd",
    "Create",
    "Deadlines",
    "Delete",
    "DeleteCause",
    "PendingDeadline",
    "Preemption",
    "Reservation",
    "RetriesUsed",
    "RetryPolicy",
    "ScalePlan",
    "SchedulePlan",
    "SiblingAction",
    "TaskCounts",
    "TaskTransition",
    "UnmetDemand",
    "after_trouble",
    "autoscale",
    "cause_of",
    "deadlines",
    "feasible",
    "job_state",
    "on_attempt_end",
    "on_wait_timeout",
    "over_quota",
    "paused_until",
    "schedule",
]
