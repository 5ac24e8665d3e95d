"""The rules of devservers: which objects a server needs, what its state is, when it stops.

Pure functions of what was observed and the time. Nothing here reads a clock or the cluster.
"""

from neorion.devservers.decide.cost import accrued
from neorion.devservers.decide.decision import (
    FINALIZER,
    STOPPED_BECAUSE,
    Decision,
    Edit,
    GoBack,
    Note,
    Observed,
    Remove,
    TurnOff,
    TurnOn,
)
from neorion.devservers.decide.evidence import FRESH, Look, Sign, Source, idle_since
from neorion.devservers.decide.lifetime import expiry
from neorion.devservers.decide.objects import (
    HOME_DELETE_AFTER,
    HOME_LABEL,
    SCRIPTS_LABEL,
    SERVER_LABEL,
    Manifest,
    Settings,
    home_name,
    service_name,
)
from neorion.devservers.decide.server import decide

__all__ = [
    "FINALIZER",
    "FRESH",
    "HOME_DELETE_AFTER",
    "HOME_LABEL",
    "SCRIPTS_LABEL",
    "SERVER_LABEL",
    "STOPPED_BECAUSE",
    "Decision",
    "Edit",
    "GoBack",
    "Look",
    "Manifest",
    "Note",
    "Observed",
    "Remove",
    "Settings",
    "Sign",
    "Source",
    "TurnOff",
    "TurnOn",
    "accrued",
    "decide",
    "expiry",
    "home_name",
    "idle_since",
    "service_name",
]
