"""Which events are about a server, and when they were seen."""

import re
from datetime import datetime

from neorion.devservers.decide import home_name
from neorion.keel.kube.core import CLAIM, POD, Event

# What a Deployment's makings have behind its name, in the letters that Kubernetes takes for chance.
_CHANCE = "[bcdfghjklmnpqrstvwxz2456789]"
_MADE = {"ReplicaSet": f"-{_CHANCE}{{1,10}}", "Pod": f"-{_CHANCE}{{1,10}}-{_CHANCE}{{5}}"}


def is_younger(event: Event, since: datetime | None) -> bool:
    """In whole seconds, as a status tells its times. What has no time counts."""
    told = event_time(event)
    return since is None or not told or datetime.fromisoformat(told).replace(microsecond=0) >= since


def event_time(event: Event) -> str:
    """The time an event was last seen, as the API writes it."""
    return (event.series.last_observed_time if event.series else event.event_time) or event.meta.created or ""


def is_about(event: Event, name: str) -> bool:
    about = event.regarding
    if about.kind == CLAIM.name:
        return about.name == home_name(name) or re.fullmatch(f"home-{name}-[0-9]+", about.name) is not None
    if about.kind == POD.name and re.fullmatch(f"{name}-[0-9]{{1,4}}", about.name):
        return True
    if about.kind in _MADE:
        return re.fullmatch(re.escape(name) + _MADE[about.kind], about.name) is not None
    return about.name == name
