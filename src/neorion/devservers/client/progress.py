"""Progress of a server towards being usable, from its status. Pure."""

from datetime import datetime, timedelta

from msgspec import Struct

from neorion.devservers.model import Condition, ConditionType, Phase
from neorion.devservers.model.kube_types import DevServerObject
from neorion.devservers.model.kueue import EXCEEDS_QUOTA

_STEPS = (
    ("volume", ConditionType.VOLUME),
    ("quota", ConditionType.QUOTA),
    ("scheduled", ConditionType.SCHEDULED),
    ("image", ConditionType.IMAGE),
    ("ready", ConditionType.READY),
)


class ProgressStep(Struct, frozen=True):
    """One step. `obstacle` is a sentence when something is in its way."""

    name: str
    done: bool
    obstacle: str = ""


def is_observed(server: DevServerObject) -> bool:
    """Reports whether the status is about the current spec and not about an older one."""
    return server.status.phase is not None and server.status.observed_generation >= server.meta.generation


def is_ready(server: DevServerObject) -> bool:
    return is_observed(server) and server.status.ready


def is_refused(server: DevServerObject) -> bool:
    """Reports whether the operator refuses the server until its spec is changed."""
    flavor = condition_of(server, ConditionType.FLAVOR)
    quota = condition_of(server, ConditionType.QUOTA)
    never = quota is not None and quota.reason == EXCEEDS_QUOTA
    return is_observed(server) and (never or (flavor is not None and flavor.status == "False"))


def steps(server: DevServerObject) -> tuple[ProgressStep, ...]:
    """In their order. Before the operator has looked, none is done."""
    if not is_observed(server):
        return tuple(ProgressStep(name, False) for name, _ in _STEPS)
    return tuple(_step(server, name, kind) for name, kind in _STEPS)


def obstacle(server: DevServerObject) -> str:
    """The one thing in the way, in a sentence; "" when there is none to name."""
    refusal = condition_of(server, ConditionType.FLAVOR)
    if refusal is not None and refusal.status == "False":
        return refusal.message
    return server.status.message or next((one.obstacle for one in steps(server) if one.obstacle), "")


def placed_after(server: DevServerObject) -> timedelta | None:
    """Time from its creation until all its Pods had nodes: the share of the control plane in its start."""
    placed = condition_of(server, ConditionType.SCHEDULED)
    if placed is None or placed.status != "True" or not server.meta.created:
        return None
    if placed.last_transition_time is None:
        return None
    return placed.last_transition_time - datetime.fromisoformat(server.meta.created)


def condition_of(server: DevServerObject, kind: ConditionType) -> Condition | None:
    return next((one for one in server.status.conditions if one.type is kind), None)


def _step(server: DevServerObject, name: str, kind: ConditionType) -> ProgressStep:
    told = condition_of(server, kind)
    if told is not None:
        return ProgressStep(name, told.status == "True", "" if told.status == "True" else told.message)
    if kind is ConditionType.QUOTA:
        # Where no queue is asked there is no such condition: a place on a node is the proof.
        scheduled = condition_of(server, ConditionType.SCHEDULED)
        waits = server.status.phase is Phase.QUEUED
        placed = scheduled is not None and scheduled.status == "True"
        return ProgressStep(
            name, placed and not waits, "It waits for its turn in the queue." if waits else ""
        )
    return ProgressStep(name, False)
