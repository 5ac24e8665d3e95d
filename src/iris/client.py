"""The client, by the name users type."""

from importlib import import_module
from typing import Any

_NAMES = ("AsyncIrisClient", "IrisClient", "Job")


def __getattr__(name: str) -> Any:  # noqa: ANN401 -- whatever type the client gives the name
    if name not in _NAMES:
        raise AttributeError(f"iris.client has no {name}; it has {', '.join(_NAMES)}")
    return getattr(import_module("neorion.iris.client"), name)


def __dir__() -> list[str]:
    return list(_NAMES)
