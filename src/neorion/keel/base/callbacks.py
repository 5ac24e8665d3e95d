"""Functions to call when something happens."""

from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Callbacks(Generic[P]):
    """Functions that a component calls without importing their modules.

    The application adds them where it connects its parts.
    """

    def __init__(self) -> None:
        self._functions: list[Callable[P, object]] = []

    def add(self, function: Callable[P, object]) -> None:
        """Functions are called in the order in which they were added."""
        self._functions.append(function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for function in self._functions:
            function(*args, **kwargs)
