"""The rules of iris: who runs where, what follows from an end, how many slices there should be.

Pure functions of a view and the time to values that leave no choice open. Nothing here reads a clock, a store or the world,
keeps anything between two calls, or carries anything out.
"""

from neorion.iris.decide.autoscale import Create, Delete, DeleteCause, ScalePlan, autoscale
from neorion.iris.decide.deadline import Deadlines, Timed, deadlines
from neorion.iris.decide.feasible import feasible
from neorion.iris.decide.lifecycle import (
    Ending,
    Rest,
    Rules,
    Spent,
    TaskCounts,
    Verdict,
    after_end,
    after_wait,
    cause_of,
    job_state,
)
from neorion.iris.decide.plan import Assignment, Demand, Hold, Plan, Preemption
from neorion.iris.decide.quota import beyond_cap
from neorion.iris.decide.reservation import HOLD_AFTER
from neorion.iris.decide.scale_group import PAUSE_MAX, after_trouble, paused_until
from neorion.iris.decide.schedule import schedule

__all__ = [
    "HOLD_AFTER",
    "PAUSE_MAX",
    "Assignment",
    "Create",
    "Deadlines",
    "Delete",
    "DeleteCause",
    "Demand",
    "Ending",
    "Hold",
    "Plan",
    "Preemption",
    "Rest",
    "Rules",
    "ScalePlan",
    "Spent",
    "TaskCounts",
    "Timed",
    "Verdict",
    "after_end",
    "after_trouble",
    "after_wait",
    "autoscale",
    "beyond_cap",
    "cause_of",
    "deadlines",
    "feasible",
    "job_state",
    "paused_until",
    "schedule",
]
