"""Rooms that load late: each module when the first of its names is used."""

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_exports(room: str, homes: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """The `__getattr__` of a package with lazy exports. `homes` maps a module to the names it defines.

    A dotted key is a full module path.

    An exported name must differ from every module of the package, because a loaded module replaces the export.
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
