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
from neorion.devservers.decide.evidence import FRESH, Look, Reading, Sight, Sign, Source, follow, missed
from neorion.devservers.decide.lifetime import expiry
from neorion.devservers.decide.looking import next_look
from neorion.devservers.decide.moving import Surroundings
from neorion.devservers.decide.objects import (
    HOME_DELETE_AFTER,
    HOME_LABEL,
    SCRIPTS_LABEL,
    SERVER_LABEL,
    Identity,
    Manifest,
    Settings,
    home_name,
    host_key_name,
    host_key_secret,
    service_name,
)
from neorion.devservers.decide.probe import PROBE, SSH_PORT, WORDS_MAX, read
from neorion.devservers.decide.ration import ahead, most
from neorion.devservers.decide.server import decide, unsure
from neorion.devservers.decide.ssh import doubts_host_key, wants_host_key

__all__ = [
    "FINALIZER",
    "FRESH",
    "HOME_DELETE_AFTER",
    "HOME_LABEL",
    "PROBE",
    "SCRIPTS_LABEL",
    "SERVER_LABEL",
    "SSH_PORT",
    "STOPPED_BECAUSE",
    "WORDS_MAX",
    "Decision",
    "Edit",
    "GoBack",
    "Identity",
    "Look",
    "Manifest",
    "Note",
    "Observed",
    "Reading",
    "Remove",
    "Settings",
    "Sight",
    "Sign",
    "Source",
    "Surroundings",
    "TurnOff",
    "TurnOn",
    "accrued",
    "ahead",
    "decide",
    "doubts_host_key",
    "expiry",
    "follow",
    "home_name",
    "host_key_name",
    "host_key_secret",
    "missed",
    "most",
    "next_look",
    "read",
    "service_name",
    "unsure",
    "wants_host_key",
]
