"""Functions of the user's own files travel with them: workers have the installed packages, not the user's folder."""

import sys
import sysconfig
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from threading import RLock
from types import ModuleType

import cloudpickle  # pyright: ignore[reportMissingTypeStubs] -- it has none

# They are on every worker.
_OURS = ("neorion", "iris")
# Where installers put packages, besides where this Python says: for one user alone, or of the system.
_PACKAGES = ("/site-packages/", "/dist-packages/")
# Cloudpickle's list of modules is one for all threads, and each client has a thread of its own.
_ONE_AT_A_TIME = RLock()


@contextmanager
def own_modules_by_value() -> Generator[None]:
    """While the block runs, whatever is defined in a file that is not installed is pickled whole, not by its name."""
    with _ONE_AT_A_TIME:
        # What somebody else registered is left to them.
        known: set[str] = cloudpickle.list_registry_pickle_by_value()  # pyright: ignore[reportUnknownVariableType] -- it has no types
        # A copy of the dict is made in one step; a list of its items is not, and other threads import modules.
        modules = sys.modules.copy()
        chosen = [module for name, module in modules.items() if name not in known and _is_own(name, module)]
        for module in chosen:
            cloudpickle.register_pickle_by_value(module)  # pyright: ignore[reportUnknownMemberType] -- it has no types
        try:
            yield
        finally:
            for module in chosen:
                cloudpickle.unregister_pickle_by_value(module)  # pyright: ignore[reportUnknownMemberType] -- it has no types


def _is_own(name: str, module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return (
        isinstance(file, str)
        and getattr(module, "__name__", None) == name
        and name.partition(".")[0] not in _OURS
        and not file.startswith(_installed())
        and not any(folder in file for folder in _PACKAGES)
    )


@cache
def _installed() -> tuple[str, ...]:
    return tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
