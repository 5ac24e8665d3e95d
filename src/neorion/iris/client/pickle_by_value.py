"""Pickles the user's own modules by value: workers have the installed packages, but not the user's folder."""

import sys
import sysconfig
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from threading import RLock
from types import ModuleType

import cloudpickle  # pyright: ignore[reportMissingTypeStubs] -- it has none

# These packages are installed on every worker.
_OURS = ("neorion", "iris")
# Folders of installed packages besides those that `sysconfig` lists: of one user, or of the system.
_PACKAGES = ("/site-packages/", "/dist-packages/")
# Cloudpickle's module registry is global, and each client has its own thread.
_REGISTRY_LOCK = RLock()


@contextmanager
def own_modules_by_value() -> Generator[None]:
    """Within the block, definitions in files that are not installed are pickled by value, not by name."""
    with _REGISTRY_LOCK:
        # Modules that the program registered itself stay registered.
        known: set[str] = cloudpickle.list_registry_pickle_by_value()  # pyright: ignore[reportUnknownVariableType] -- it has no types
        # Copying the dict is atomic; listing its items is not, and other threads import modules.
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
