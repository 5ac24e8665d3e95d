"""The plugin before a kubelet that is played here: what a real one asks, in its order."""

# pyright: reportMissingTypeStubs=false

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import grpc
import grpc.aio
import pytest

from neorion.drydock.devices import RESOURCE, DeviceTable, Health
from neorion.drydock.devices.gen.deviceplugin_pb import (
    AllocateRequest,
    AllocateResponse,
    ContainerAllocateRequest,
    Empty,
    ListAndWatchResponse,
    RegisterRequest,
)
from neorion.drydock.devices.plugin import Plugin
from neorion.keel.clock import SystemClock

pytestmark = pytest.mark.anyio


def _bytes(message: Any) -> bytes:
    return message.to_binary()


class _Kubelet:
    """Takes registrations and calls back, as a kubelet does; `stop` takes plugins' sockets with it, as a restart does."""

    def __init__(self, sockets: Path) -> None:
        self._sockets = sockets
        self._registered = asyncio.Queue[RegisterRequest]()

    @asynccontextmanager
    async def life(self) -> AsyncGenerator[None]:
        async def register(request: RegisterRequest, _: object) -> Empty:
            self._registered.put_nowait(request)
            return Empty()

        for old in self._sockets.glob("*.sock"):
            # A plugin that has just heard of the end takes its own.
            old.unlink(missing_ok=True)
        handler = grpc.unary_unary_rpc_method_handler(register, RegisterRequest.from_binary, _bytes)
        server = grpc.aio.server()
        service = grpc.method_handlers_generic_handler("v1beta1.Registration", {"Register": handler})
        server.add_generic_rpc_handlers((service,))
        server.add_insecure_port(f"unix:{self._sockets}/kubelet.sock")
        await server.start()
        try:
            yield
        finally:
            await server.stop(None)

    @asynccontextmanager
    async def call_back(self) -> AsyncGenerator[tuple[Any, Any]]:
        """After a registration: the stream of devices, and the call that allocates."""
        request = await self._registered.get()
        assert (request.version, request.resource_name) == ("v1beta1", RESOURCE)
        async with grpc.aio.insecure_channel(f"unix:{self._sockets}/{request.endpoint}") as channel:
            watch = channel.unary_stream(
                "/v1beta1.DevicePlugin/ListAndWatch", _bytes, ListAndWatchResponse.from_binary
            )
            allocate = channel.unary_unary(
                "/v1beta1.DevicePlugin/Allocate", _bytes, AllocateResponse.from_binary
            )
            yield watch(Empty()), allocate


async def test_a_kubelet_hears_of_devices_of_each_change_and_again_after_its_restart(tmp_path: Path):
    rack = DeviceTable(tmp_path)
    rack.fill(3)
    plugin = Plugin(rack, SystemClock(), tmp_path)
    kubelet = _Kubelet(tmp_path)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(plugin.listen)
        tasks.start_soon(plugin.offer)
        async with kubelet.life(), kubelet.call_back() as (devices, allocate):
            assert [device.health for device in (await devices.read()).devices] == ["Healthy"] * 3
            await rack.mark(1, Health.UNHEALTHY)
            assert [device.health for device in (await devices.read()).devices] == [
                "Healthy",
                "Unhealthy",
                "Healthy",
            ]
            wanted = [rack.slots()[2].id]
            request = AllocateRequest(container_requests=[ContainerAllocateRequest(devices_ids=wanted)])
            (answer,) = (await allocate(request)).container_responses
            assert answer.envs == {"NVIDIA_VISIBLE_DEVICES": wanted[0]}
            assert [device.container_path for device in answer.devices] == ["/dev/nvidia2"]
        async with kubelet.life(), kubelet.call_back() as (devices, _):
            assert len((await devices.read()).devices) == 3
        tasks.cancel_scope.cancel()
