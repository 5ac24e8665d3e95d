"""Lengths of time as people type them and as a DevServer keeps them."""

from datetime import timedelta

from neorion.keel.base import Duration, Invalid, UnitError

# Half a minute would be over before the first login.
SHORTEST = timedelta(minutes=1)
# What a DevServer can write down with room to spare.
LONGEST = timedelta(days=9999)


def parse_span(text: str) -> timedelta:
    """`30m`, `2h30m`, `1d`."""
    try:
        given = Duration.parse(text)
    except UnitError:
        raise Invalid(
            "devservers.time",
            f'"{text[:40]}" is no length of time.',
            hint="Write one such as 30m, 2h30m or 1d, the largest unit first.",
        ) from None
    found = timedelta(seconds=int(given.seconds))
    if not SHORTEST <= found <= LONGEST:
        raise Invalid(
            "devservers.time_range",
            f"{text} is too {'short' if found < SHORTEST else 'long'}: a time lies between 1m and 9999d.",
            hint="Write one such as 30m, 2h30m or 1d.",
        )
    return found


def span_text(span: timedelta) -> str:
    """The form that both people and the API server read: `2h30m`."""
    return str(Duration.of(seconds=int(span.total_seconds())))
