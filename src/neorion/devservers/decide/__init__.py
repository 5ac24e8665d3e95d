"""The rules of devservers: which objects a server needs, what its state is, when it stops.

Pure functions of what was observed and the time. Nothing here reads a clock or the cluster.
"""

from neorion.devservers.decide.evidence import FRESH, Look, Sign, Source, idle_since
from neorion.devservers.decide.lifetime import (
    Running,
    deadline,
    expiry,
    next_start,
    next_warning,
    schedule_fault,
    should_start,
    warnings_due,
)

__all__ = [
    "FRESH",
    "Look",
    "Running",
    "Sign",
    "Source",
    "deadline",
    "expiry",
    "idle_since",
    "next_start",
    "next_warning",
    "schedule_fault",
    "should_start",
    "warnings_due",
]
