"""The devices of one node, in a file that the plugin reads and commands change."""

import os
import uuid
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from neorion.drydock.host import locked
from neorion.keel.base import NotFound, did_you_mean

RESOURCE: Final = "nvidia.com/gpu"
_FILE: Final = "devices.json"
_WAKE: Final = "devices.wake"


class Health(StrEnum):
    """The health of a device, in the kubelet's spelling."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"


class Device(msgspec.Struct, frozen=True):
    """One device. Its id is as long as a real GPU's, and constant for a position in a node."""

    id: str
    health: Health = Health.HEALTHY


class DeviceTable:
    """The devices in a node's folder. A change wakes the plugin through a pipe; the wake carries no data."""

    def __init__(self, node: Path) -> None:
        self._node = node

    @property
    def wake(self) -> Path:
        return self._node / _WAKE

    def slots(self) -> list[Device]:
        try:
            return msgspec.json.decode((self._node / _FILE).read_bytes(), type=list[Device])
        except FileNotFoundError:
            return []

    def fill(self, count: int) -> None:
        """Creates this many healthy devices; existing ones keep their health."""
        known = {slot.id: slot for slot in self.slots()}
        ids = [f"GPU-{uuid.uuid5(uuid.NAMESPACE_URL, f'{self._node}/{index}')}" for index in range(count)]
        if not self.wake.exists():
            os.mkfifo(self.wake, 0o600)
        self._save([known.get(each, Device(each)) for each in ids])

    async def mark(self, index: int, health: Health) -> None:
        """Sets the health of the device at an index; its kubelet is notified at once."""
        async with locked(self._node):
            slots = self.slots()
            if not 0 <= index < len(slots):
                places = [str(place) for place in range(len(slots))]
                raise NotFound(
                    "devices.no_such_place",
                    f"Node {self._node.name} has no device {index}.",
                    hint=did_you_mean(str(index), places) or "Add a node with devices: --gpus 8.",
                )
            slots[index] = Device(slots[index].id, health)
            self._save(slots)

    def _save(self, slots: list[Device]) -> None:
        partial = self._node / f"{_FILE}.part"
        partial.write_bytes(msgspec.json.encode(slots))
        partial.replace(self._node / _FILE)
        # A missing reader is fine, because a plugin reads the file when it starts. A full pipe wakes it as well.
        with suppress(OSError):
            pipe = os.open(self.wake, os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(pipe, b"\n")
            finally:
                os.close(pipe)
