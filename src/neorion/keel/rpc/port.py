"""The port through which generated clients send their calls."""

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol, TypeVar

from protobuf import Message

T = TypeVar("T", bound=Message)


class Caller(Protocol):
    """Sends one request and returns its answer, or its answers as they come.

    Where the call fails one of the error families is raised.
    """

    async def unary(
        self,
        path: str,
        request: Message,
        answer: type[T],
        headers: Mapping[str, str] | None,
        timeout_ms: int | None,
    ) -> T: ...

    def stream(
        self,
        path: str,
        request: Message,
        answer: type[T],
        headers: Mapping[str, str] | None,
        timeout_ms: int | None,
    ) -> AsyncGenerator[T]: ...

    def show(self, token: str | None) -> None:
        """From now on calls carry this token; None is the one that the caller was made with."""
        ...
