"""Label selectors, read as the API server reads them: `app=web,env in (a, b),!old`."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from neorion.keel.base import Invalid

Matcher = Callable[[Mapping[str, str]], bool]

_COMMA: Final = re.compile(r",(?![^(]*\))")
_KEY: Final = r"[A-Za-z0-9][A-Za-z0-9._/-]*"
_EQUALITY: Final = re.compile(rf"({_KEY})\s*(==|=|!=)\s*([A-Za-z0-9._-]*)")
_SET: Final = re.compile(rf"({_KEY})\s+(in|notin)\s+\(([^()]*)\)")
_PRESENCE: Final = re.compile(rf"(!?)\s*({_KEY})")


@lru_cache(maxsize=256)
def matcher(selector: str) -> Matcher:
    """A test for the labels of an object. The empty selector selects everything."""
    demands = [_demand(part.strip()) for part in _COMMA.split(selector)] if selector.strip() else []
    return lambda labels: all(demand(labels) for demand in demands)


def _demand(text: str) -> Matcher:
    if found := _SET.fullmatch(text):
        key, word, values = found[1], found[2], {value.strip() for value in found[3].split(",")}
        return lambda labels: (labels.get(key) in values) is (word == "in")
    if found := _EQUALITY.fullmatch(text):
        key, sign, value = found.groups()
        return lambda labels: (labels.get(key) == value) is (sign != "!=")
    if found := _PRESENCE.fullmatch(text):
        absent, key = bool(found[1]), found[2]
        return lambda labels: (key in labels) is not absent
    raise Invalid(
        "kube.selector",
        f'"{text}" selects no labels.',
        hint='Write "app=web", "env in (a, b)", "gpu" or "!gpu".',
    )
