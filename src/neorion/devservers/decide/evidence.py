"""Is anybody using the server? Only fresh evidence can say no; what is unknown is never idle."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

# A look older than this says nothing about now: the looker may be gone.
FRESH = timedelta(minutes=5)


class Source(StrEnum):
    """What can show that a server is used."""

    SESSION = "an open session"
    TERMINAL = "typing in a terminal"
    CPU = "CPU use"
    GPU = "GPU use"
    PROCESS = "a running job"
    NOTEBOOK = "a busy notebook"


@dataclass(frozen=True, slots=True)
class Sign:
    """When one source was last seen active."""

    source: Source
    active: datetime


@dataclass(frozen=True, slots=True)
class Look:
    """One look into the server: when it was taken, and the signs it found."""

    taken: datetime
    signs: tuple[Sign, ...] = ()

    def fresh(self, now: datetime) -> bool:
        return now - self.taken <= FRESH

    @property
    def latest(self) -> Sign | None:
        return max(self.signs, key=lambda sign: sign.active, default=None)


def idle_since(look: Look | None, running_since: datetime, now: datetime) -> datetime | None:
    """Since when nobody has used it; None while that is not known."""
    if look is None or not look.fresh(now):
        return None
    latest = look.latest
    return max(running_since, latest.active) if latest else running_since
