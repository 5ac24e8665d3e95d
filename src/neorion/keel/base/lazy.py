"""Rooms that load late: each module when the first of its names is used."""

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_exports(room: str, homes: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """The `__getattr__` of a room. `homes` says which names are in which of its modules; others are named in full.

    No name may be that of a module in the room: that one would be found instead, once it is loaded.
    """
    home = {
        name: module if "." in module else f"{room}.{module}"
        for module, names in homes.items()
        for name in names
    }

    def find(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(import_module(home[name]), name)

    return find
