"""The names by which actions and autoscalers are known outside: in `navarch plan -o json` and the AUTOSCALER column.

They stay as they are when a class is renamed. A class that is not listed is known by its own name.
"""

from collections.abc import Mapping
from typing import Final

from neorion.navarch.decide import (
    BuyNode,
    ForgetAilment,
    NameSuccessor,
    NoteSilence,
    StepRepair,
    WantNodes,
)
from neorion.navarch.model.spec import Composite, Predictive, Queue, Reactive, Scheduled

_ACTIONS: Final[Mapping[type, str]] = {
    BuyNode: "BuyNode",
    ForgetAilment: "ForgetAilment",
    NameSuccessor: "NameSuccessor",
    NoteSilence: "NoteSilence",
    StepRepair: "StepRepair",
    WantNodes: "WantNodes",
}
_AUTOSCALERS: Final[Mapping[type, str]] = {
    Composite: "composite",
    Predictive: "predictive",
    Queue: "queue",
    Reactive: "reactive",
    Scheduled: "scheduled",
}


def action_name(action: object) -> str:
    return _ACTIONS.get(type(action), type(action).__name__)


def autoscaler_name(autoscaler: object | None) -> str:
    """Empty for a pool without an autoscaler."""
    if autoscaler is None:
        return ""
    return _AUTOSCALERS.get(type(autoscaler), type(autoscaler).__name__.lower())
