"""Events of a server: which concern it, and when each was last seen."""

import re
from datetime import datetime

from neorion.devservers.decide import home_name
from neorion.keel.kube.core import CLAIM, POD, Event

# Suffixes of the names of objects that a Deployment makes, in the letters Kubernetes uses for random suffixes.
_RANDOM = "[bcdfghjklmnpqrstvwxz2456789]"
_MADE = {"ReplicaSet": f"-{_RANDOM}{{1,10}}", "Pod": f"-{_RANDOM}{{1,10}}-{_RANDOM}{{5}}"}


def is_after(event: Event, since: datetime | None) -> bool:
    """Compare in whole seconds, as a status keeps its times. An event without a time counts."""
    at = event_time(event)
    return since is None or not at or datetime.fromisoformat(at).replace(microsecond=0) >= since


def event_time(event: Event) -> str:
    """The time an event was last seen, as the API writes it."""
    return (event.series.last_observed_time if event.series else event.event_time) or event.meta.created or ""


def is_about(event: Event, name: str) -> bool:
    """Return whether an event concerns a server or an object made for it."""
    about = event.regarding
    if about.kind == CLAIM.name:
        return about.name == home_name(name) or re.fullmatch(f"home-{name}-[0-9]+", about.name) is not None
    if about.kind == POD.name and re.fullmatch(f"{name}-[0-9]{{1,4}}", about.name):
        return True
    if about.kind in _MADE:
        return re.fullmatch(re.escape(name) + _MADE[about.kind], about.name) is not None
    return about.name == name
