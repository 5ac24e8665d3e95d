"""Suggestions for a wrong name: the most similar of the valid ones."""

from bisect import bisect
from collections.abc import Iterable

# A comparison takes some microseconds. The limit keeps a caller who sends wrong names repeatedly from slowing a server.
COMPARED_MAX = 500


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The most similar name. Of many names, only the neighbours in alphabetical order are compared."""
    from difflib import get_close_matches  # noqa: PLC0415 -- only errors need it

    lower = word.lower()[:100]
    # Of two spellings that differ in case alone, the first counts.
    names = {name.lower(): name for name in reversed(list(known))}
    compared = sorted(names)
    if len(compared) > COMPARED_MAX:
        middle = bisect(compared, lower)
        compared = compared[max(0, middle - COMPARED_MAX // 2) : middle + COMPARED_MAX // 2]
    found = get_close_matches(lower, compared, n=1, cutoff=0.6)
    return names[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint: the most similar name, or all of them when none is similar and they are few."""
    words = sorted(known)
    near = nearest(word, words)
    if near is not None:
        return f'did you mean "{near}"?'
    return f"known: {', '.join(words)}" if 0 < len(words) <= 12 else ""
