"""Did you mean: the nearest of the words that would have been right."""

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches  # noqa: PLC0415 -- only who is wrong pays for it

    found = get_close_matches(word.lower()[:100], {name.lower(): None for name in known}, n=1, cutoff=0.6)
    return next((name for name in known if found and name.lower() == found[0]), None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint: the likely word, or all of them when none is near and they are few."""
    words = sorted(known)
    near = nearest(word, words)
    if near is not None:
        return f'did you mean "{near}"?'
    return f"known: {', '.join(words)}" if 0 < len(words) <= 12 else ""
