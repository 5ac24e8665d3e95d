"""The id that follows one request through every process it touches."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

HEADER: Final = "x-correlation-id"
_current: ContextVar[str] = ContextVar("neorion_correlation", default="")


def current() -> str:
    """The id of the request being served, or "" outside of any."""
    return _current.get()


@contextmanager
def correlated(correlation_id: str) -> Generator[None]:
    token = _current.set(correlation_id)
    try:
        yield
    finally:
        _current.reset(token)
