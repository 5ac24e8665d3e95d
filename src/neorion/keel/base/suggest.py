"""Did you mean: the nearest of the words that would have been right."""

from bisect import bisect
from collections.abc import Iterable

# Comparing takes some microseconds a word. A caller who asks for wrong names again and again must not hold up a server.
COMPARED_MAX = 500


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The most similar word. Of many, only those are compared that stand near it in the alphabet."""
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
    """A hint: the likely word, or all of them when none is near and they are few."""
    words = sorted(known)
    near = nearest(word, words)
    if near is not None:
        return f'did you mean "{near}"?'
    return f"known: {', '.join(words)}" if 0 < len(words) <= 12 else ""
