"""Times and spans as people read them."""

from typing import Final

from neorion.keel.base import Duration, Instant

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60))


def instant_of_ms(ms: int) -> Instant | None:
    """Converts a time in milliseconds; 0 means none."""
    return Instant(ms * 1_000_000) if ms else None


def short(span: Duration) -> str:
    """A span in its largest unit, e.g. "3m"."""
    seconds = span.ns // 1_000_000_000
    for name, unit in _UNITS:
        if seconds >= unit:
            return f"{seconds // unit}{name}"
    return f"{seconds}s"


def ago(now: Instant, then: Instant | None) -> str:
    """Age in its largest unit, e.g. "3m ago"."""
    return f"{short(now.since(then))} ago" if then else ""
