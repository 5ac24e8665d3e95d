"""Refusals by the cluster, as sentences: of the operator's own writes, and of a Deployment's pod."""

import re
from typing import Final

from neorion.devservers.decide.progress import ConditionStep
from neorion.devservers.model import ConditionType
from neorion.devservers.model.kube_types import ServerDeployment

# Which object it was about says nothing to a person, and each attempt at a pod has another name.
_ABOUT: Final = re.compile(r'^\S+ "[^"]*" is (?:forbidden|invalid): ')
_QUOTA: Final = re.compile(r"^exceeded quota: ([^,]+), requested: (.+), used: (.+), limited: (.+)$")
# A server may list hundreds of mistakes; the first ones say it all.
_WORDS_MAX: Final = 400


def pod_refusal(body: ServerDeployment) -> str:
    """Reason why the Deployment cannot create its pod, without the pod's name; "" if there is none."""
    messages = (one.message for one in body.status.conditions if one.type == "ReplicaFailure")
    return _ABOUT.sub("", next(messages, ""))


def contested_steps(told: str) -> tuple[ConditionStep, ...]:
    """Nothing, where no other writer changes what the operator has written."""
    return (ConditionStep(ConditionType.CONTESTED, True, "AnotherWriter", told),) if told else ()


def refusal_steps(told: str) -> tuple[ConditionStep, ...]:
    """Condition for a refusal; empty without one."""
    if not told:
        return ()
    words = _ABOUT.sub("", told).rstrip(".")
    if short := _QUOTA.match(words):
        quota, asked, used, most = short.groups()
        sentence = (
            f'The quota "{quota}" has no room: {asked} is asked for, {used} is used, {most} is the most.'
        )
        return (ConditionStep(ConditionType.QUOTA, False, "QuotaExceeded", sentence),)
    sentence = f"The cluster refuses what the server needs: {words[:_WORDS_MAX]}."
    return (ConditionStep(ConditionType.QUOTA, False, "Refused", sentence),)
