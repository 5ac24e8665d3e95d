"""Calls to one of several servers: to the same one until it fails, then to the next.

A call is not repeated here. Its caller hears why it failed, and tries again as with one server.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final, TypeVar

from protobuf import Message

from neorion.keel.base import Retry
from neorion.keel.rpc.port import Caller

T = TypeVar("T", bound=Message)

_GONE: Final = frozenset({"rpc.unreachable", "rpc.broken", "rpc.deadline", "rpc.draining"})
# The last part of the code with which a server says that another one leads.
_STANDBY: Final = ".standby"


class FailoverCaller:
    """The callers of several servers. One of them is asked at a time."""

    def __init__(self, callers: Sequence[Caller]) -> None:
        self._callers = callers
        self._current = 0

    async def unary(
        self,
        path: str,
        request: Message,
        answer: type[T],
        headers: Mapping[str, str] | None,
        timeout_ms: int | None,
    ) -> T:
        asked = self._current
        try:
            return await self._callers[asked].unary(path, request, answer, headers, timeout_ms)
        except Retry as error:
            self._leave(asked, error)
            raise

    async def stream(
        self,
        path: str,
        request: Message,
        answer: type[T],
        headers: Mapping[str, str] | None,
        timeout_ms: int | None,
    ) -> AsyncGenerator[T]:
        asked = self._current
        try:
            async for message in self._callers[asked].stream(path, request, answer, headers, timeout_ms):
                yield message
        except Retry as error:
            self._leave(asked, error)
            raise

    def show(self, token: str | None) -> None:
        for caller in self._callers:
            caller.show(token)

    def _leave(self, asked: int, error: Retry) -> None:
        """Once for all calls that fail together."""
        if asked == self._current and (error.code in _GONE or error.code.endswith(_STANDBY)):
            self._current = (asked + 1) % len(self._callers)
