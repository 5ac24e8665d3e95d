"""Times of the week in a time zone."""

from datetime import datetime, timedelta, timezone

from neorion.keel.base import Instant
from neorion.navarch.model.spec import Window

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017 -- the alias would read as if it were a clock


def is_open(window: Window, now: Instant) -> bool:
    """A window over midnight belongs to the day on which it begins."""
    local = (_EPOCH + timedelta(microseconds=now.ns // 1_000)).astimezone(window.zone)
    minute, day = local.hour * 60 + local.minute, local.weekday()
    if window.start < window.end:
        return day in window.days and window.start <= minute < window.end
    return (day in window.days and minute >= window.start) or (
        (day - 1) % 7 in window.days and minute < window.end
    )
