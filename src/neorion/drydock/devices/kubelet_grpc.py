"""gRPC with a kubelet: the only module that uses the library, which has no types."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedBaseClass=false

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final, Protocol

import grpc
import grpc.aio

from neorion.drydock.devices.gen.deviceplugin_pb import (
    AllocateRequest,
    AllocateResponse,
    DevicePluginOptions,
    Empty,
    ListAndWatchResponse,
    RegisterRequest,
)
from neorion.keel.base import Duration, Retry
from neorion.keel.rpc.grpc_socket import GrpcError, GrpcSocket

_PLUGIN: Final = "v1beta1.DevicePlugin"
_REGISTER: Final = "v1beta1.Registration/Register"
_ANSWER_MOST: Final = Duration.of(seconds=5)


class _Message(Protocol):
    def to_binary(self) -> bytes: ...


class Offer(Protocol):
    """The methods that a kubelet calls on a plugin."""

    def devices(self) -> AsyncIterator[ListAndWatchResponse]:
        """Yields all devices at once, and again after each change."""
        ...

    def allocate(self, request: AllocateRequest) -> AllocateResponse: ...


async def serve(offer: Offer, socket: Path) -> grpc.aio.Server:
    """Listens on the socket that the kubelet will connect to. The caller stops it."""

    async def options(_: Empty, __: object) -> DevicePluginOptions:
        return DevicePluginOptions()

    async def list_and_watch(_: Empty, __: object) -> AsyncIterator[ListAndWatchResponse]:
        async for each in offer.devices():
            yield each

    async def allocate(request: AllocateRequest, _: object) -> AllocateResponse:
        return offer.allocate(request)

    handlers = {
        "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(options, Empty.from_binary, _bytes),
        "ListAndWatch": grpc.unary_stream_rpc_method_handler(list_and_watch, Empty.from_binary, _bytes),
        "Allocate": grpc.unary_unary_rpc_method_handler(allocate, AllocateRequest.from_binary, _bytes),
    }
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_PLUGIN, handlers),))
    socket.unlink(missing_ok=True)
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    return server


async def register(kubelet: Path, request: RegisterRequest) -> None:
    """Registers the plugin's socket with the kubelet."""
    async with GrpcSocket(kubelet) as channel:
        try:
            await channel.call(_REGISTER, request, Empty, _ANSWER_MOST)
        except GrpcError as error:
            raise Retry(
                "devices.kubelet_away",
                f"The kubelet does not take the registration: {error.details}.",
                hint="Wait until the kubelet runs.",
            ) from error


def _bytes(message: _Message) -> bytes:
    return message.to_binary()
