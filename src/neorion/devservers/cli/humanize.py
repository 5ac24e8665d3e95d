"""Times and states as people read them."""

from datetime import datetime
from typing import Final

from neorion.devservers.model import Phase
from neorion.keel.base import Instant
from neorion.keel.cli.kit import Tone
from neorion.keel.cli.kit.humanize import short

TONES: Final = {
    Phase.RUNNING.value: Tone.GOOD,
    Phase.PENDING.value: Tone.WARNING,
    Phase.QUEUED.value: Tone.WARNING,
    Phase.STARTING.value: Tone.WARNING,
    Phase.STOPPING.value: Tone.WARNING,
    Phase.TERMINATING.value: Tone.WARNING,
    Phase.STOPPED.value: Tone.QUIET,
    Phase.EXPIRED.value: Tone.QUIET,
    Phase.FAILED.value: Tone.BAD,
}


def moment(time: datetime | str | None) -> Instant | None:
    """A time of the API, as records keep it."""
    if not time:
        return None
    known = datetime.fromisoformat(time) if isinstance(time, str) else time
    return Instant(int(known.timestamp()) * 1_000_000_000)


def age(now: Instant, born: Instant | None) -> str:
    return short(now.since(born)) if born else ""


def until(now: Instant, then: Instant | None) -> str:
    if then is None:
        return ""
    return f"in {short(then.since(now))}" if then > now else "now"


def clock_text(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M %Z}"
