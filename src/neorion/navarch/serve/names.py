"""The names by which actions and autoscalers are known outside: in `navarch plan -o json` and the AUTOSCALER column.

They stay as they are when a class is renamed. A class that is not listed is known by its own name.
"""

from collections.abc import Mapping
from typing import Final

from neorion.navarch.decide import (
    AdvanceRepair,
    AssignReplacement,
    ClearAilment,
    ProvisionNode,
    ReportSilence,
    SetDesiredSize,
)
from neorion.navarch.model.spec import (
    CompositeAutoscaler,
    PredictiveAutoscaler,
    QueueAutoscaler,
    ReactiveAutoscaler,
    ScheduledAutoscaler,
)

_ACTIONS: Final[Mapping[type, str]] = {
    ProvisionNode: "BuyNode",
    ClearAilment: "ForgetAilment",
    AssignReplacement: "NameSuccessor",
    ReportSilence: "NoteSilence",
    AdvanceRepair: "StepRepair",
    SetDesiredSize: "WantNodes",
}
_AUTOSCALERS: Final[Mapping[type, str]] = {
    CompositeAutoscaler: "composite",
    PredictiveAutoscaler: "predictive",
    QueueAutoscaler: "queue",
    ReactiveAutoscaler: "reactive",
    ScheduledAutoscaler: "scheduled",
}


def action_name(action: object) -> str:
    return _ACTIONS.get(type(action), type(action).__name__)


def autoscaler_name(autoscaler: object | None) -> str:
    """Empty for a pool without an autoscaler."""
    if autoscaler is None:
        return ""
    return _AUTOSCALERS.get(type(autoscaler), type(autoscaler).__name__.lower())
