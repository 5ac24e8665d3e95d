"""Unary gRPC calls over a Unix socket: the one client of the library, which has no types."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self, TypeVar

import grpc.aio

from neorion.keel.base import Duration

# A socket file has no host; servers written in Go insist on the name of one.
_OPTIONS: Final = (
    ("grpc.default_authority", "localhost"),
    ("grpc.max_receive_message_length", 16 << 20),
)


class GrpcMessage(Protocol):
    """A message of generated code."""

    def to_binary(self) -> bytes: ...

    @classmethod
    def from_binary(cls, data: bytes, /) -> Self: ...


M = TypeVar("M", bound=GrpcMessage)


class GrpcError(Exception):
    """A call that failed, with the name of its status code and the server's own words."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(code, details)
        self.code = code
        self.details = details


class GrpcSocket:
    """One channel to the server behind a socket. It connects by itself when calls are made."""

    def __init__(self, socket: Path) -> None:
        self._channel = grpc.aio.insecure_channel(f"unix:{socket}", options=_OPTIONS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._channel.close()

    async def call(self, method: str, request: GrpcMessage, answer: type[M], limit: Duration) -> M:
        """Sends the request to `package.Service/Method`. Raises GrpcError where it fails."""
        call = self._channel.unary_unary(f"/{method}", _bytes, answer.from_binary)
        try:
            return await call(request, timeout=limit.seconds)
        except grpc.aio.AioRpcError as error:
            raise GrpcError(error.code().name, error.details() or "") from None


def _bytes(message: GrpcMessage) -> bytes:
    return message.to_binary()
