"""The device plugin: offers a node's devices to its kubelet while both run."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import anyio

from neorion.drydock.devices.device_state import RESOURCE, DeviceTable
from neorion.drydock.devices.gen.deviceplugin_pb import (
    AllocateRequest,
    AllocateResponse,
    ContainerAllocateResponse,
    Device,
    DeviceSpec,
    ListAndWatchResponse,
    RegisterRequest,
)
from neorion.drydock.devices.kubelet_grpc import register, serve
from neorion.keel.base import Duration, Retry
from neorion.keel.clock import Clock
from neorion.keel.telemetry import logger

log = logger(__name__)

# The folder that kubelets use; each node has its own folder mounted here.
SOCKETS: Final = Path("/var/lib/kubelet/device-plugins")
_OURS: Final = "drydock-gpu.sock"
# A kubelet calls back within milliseconds. One that was just starting has removed our socket, and never will.
_CALL_BACK_MOST: Final = Duration.of(seconds=3)
# A kubelet restarts within a second, and its devices should return soon after.
_AGAIN: Final = Duration.of(ms=200)


class Plugin:
    """One session after another: a kubelet that restarts drops its plugins and removes their sockets."""

    def __init__(self, table: DeviceTable, clock: Clock, sockets: Path = SOCKETS) -> None:
        self._table = table
        self._clock = clock
        self._sockets = sockets
        self._changed = anyio.Event()
        self._called = anyio.Event()
        self._left = anyio.Event()

    async def listen(self) -> None:
        """Waits for changed devices, endlessly."""
        # Opened for both directions, so that the end of a writer is not the end of the pipe.
        pipe = os.open(self._table.wake, os.O_RDWR | os.O_NONBLOCK)
        try:
            while True:
                await anyio.wait_readable(pipe)
                os.read(pipe, 4096)
                changed, self._changed = self._changed, anyio.Event()
                changed.set()
        finally:
            os.close(pipe)

    async def offer(self) -> None:
        """Offers the devices to the current kubelet, endlessly."""
        while True:
            try:
                await self._session()
            except Retry as error:
                log.debug("no kubelet", why=str(error))
                await self._clock.sleep(_AGAIN)

    async def _session(self) -> None:
        """Runs until the kubelet leaves; raises a Retry then, or if it cannot be reached."""
        self._called, self._left = anyio.Event(), anyio.Event()
        server = await serve(self, self._sockets / _OURS)
        try:
            request = RegisterRequest(version="v1beta1", endpoint=_OURS, resource_name=RESOURCE)
            await register(self._sockets / "kubelet.sock", request)
            with anyio.move_on_after(_CALL_BACK_MOST.seconds):
                await self._called.wait()
                log.info("registered", resource=RESOURCE)
            if self._called.is_set():
                await self._left.wait()
        finally:
            await server.stop(None)
        raise Retry("devices.kubelet_left", "The kubelet has ended the session.")

    async def devices(self) -> AsyncIterator[ListAndWatchResponse]:
        self._called.set()
        try:
            while True:
                changed = self._changed
                slots = self._table.slots()
                yield ListAndWatchResponse(devices=[Device(ID=slot.id, health=slot.health) for slot in slots])
                await changed.wait()
        finally:
            self._left.set()

    def allocate(self, request: AllocateRequest) -> AllocateResponse:
        """Allocates like NVIDIA's plugin: ids in the environment, and a device file for each, here /dev/null."""
        places = {slot.id: place for place, slot in enumerate(self._table.slots())}
        return AllocateResponse(
            container_responses=[
                ContainerAllocateResponse(
                    envs={"NVIDIA_VISIBLE_DEVICES": ",".join(container.devices_ids)},
                    devices=[
                        DeviceSpec(
                            container_path=f"/dev/nvidia{places[each]}",
                            host_path="/dev/null",
                            permissions="rw",
                        )
                        for each in container.devices_ids
                    ],
                )
                for container in request.container_requests
            ]
        )
