"""Bounds on a YAML text, found before its values are made: how deep they are nested, and how many they are."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

# libyaml is ten times as fast, which is noticed at a terminal. A PyYAML built without it reads the same files.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# A parser of C reads nested values by recursion, and ends the process where its stack ends.
_DEPTH_MAX = 64
# Aliases may repeat parts of a file. A small file could otherwise become as large as memory.
_VALUES_MAX = 100_000


def exceeded_bound(text: str) -> str:
    """The bound that a YAML text exceeds with all aliases written out, or nothing."""
    size = _Size()
    for event in _events(text):
        if isinstance(event, yaml.AliasEvent) and event.anchor in size.open_anchors():
            return "an alias stands inside of its own value"
        size.add(event)
        if size.values > _VALUES_MAX:
            return f"its aliases stand for more than {_VALUES_MAX} values"
        if len(size.opened) > _DEPTH_MAX:
            return f"its values are nested more than {_DEPTH_MAX} deep"
    return ""


def _events(text: str) -> Iterator[yaml.Event]:
    yield from yaml.parse(text, LOADER)  # pyright: ignore[reportUnknownMemberType] -- untyped


@dataclass(slots=True)
class _Size:
    """The number of values in a YAML text so far. An alias counts as all that it stands for."""

    values: int = 0
    # The sizes of anchors whose value is complete.
    _sizes: dict[str | None, int] = field(default_factory=dict[str | None, int])
    # Lists and mappings that are not complete: the anchor, and the number of values before it.
    opened: list[tuple[str | None, int]] = field(default_factory=list[tuple[str | None, int]])

    def open_anchors(self) -> Iterator[str | None]:
        return (anchor for anchor, _ in self.opened)

    def add(self, event: yaml.Event) -> None:
        match event:
            case yaml.AliasEvent():
                self.values += self._sizes.get(event.anchor, 0)
            case yaml.ScalarEvent():
                self.values += 1
                self._sizes[event.anchor] = 1
            case yaml.CollectionStartEvent():
                self.opened.append((event.anchor, self.values))
                self.values += 1
            case yaml.CollectionEndEvent():
                anchor, before = self.opened.pop()
                self._sizes[anchor] = self.values - before
            case _:
                pass
