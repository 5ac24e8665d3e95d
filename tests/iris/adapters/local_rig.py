"""What tests of slices of real processes share: how they are ordered, heard and waited for."""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import anyio
import pytest

from neorion.iris.adapters.platforms.fault_injection import FaultProfile
from neorion.iris.adapters.platforms.local import LocalPlatform, LocalSettings
from neorion.iris.model import Resources, SliceId, SliceState
from neorion.iris.ports import SliceRequest, SliceStatus

STANDIN = Path(__file__).parent.parent / "standin.py"
TOKEN = "s3cret-of-the-slice"
# A wait that fails ends the test in time for its processes to be cleaned up.
PATIENCE_S = 120

Open = Callable[..., LocalPlatform]


async def readable(descriptor: int) -> None:
    with anyio.fail_after(PATIENCE_S):
        await anyio.wait_readable(descriptor)


class Ear:
    """Hears what stand-ins say, without asking again and again."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._heard = b""

    async def line(self, about: str) -> list[str]:
        """The words after `about` in the next line that begins with it."""
        while True:
            while b"\n" not in self._heard:
                await readable(self._descriptor)
                self._heard += os.read(self._descriptor, 65536)
            line, _, self._heard = self._heard.partition(b"\n")
            first, *rest = line.decode().split()
            if first == about:
                return rest

    def close(self) -> None:
        os.close(self._descriptor)


def settings(folder: Path, behaviours: Mapping[str, FaultProfile] | None = None) -> LocalSettings:
    variables = {"PATH": os.environ["PATH"], "COLOUR": "green"}
    return LocalSettings(folder / "state", "here:1", variables, behaviours or {})


def order(name: str = "a", machines: int = 1) -> SliceRequest:
    return SliceRequest(
        id=SliceId.made_of(name),
        group="h100",
        machines=machines,
        shape=Resources(cpu_milli=8000, memory=2**34, gpus=8, gpu_variant="H100"),
        attributes=(("zone", "here"),),
        controller="here:1",
        token=TOKEN,
    )


def shown(pid: str, file: str) -> str:
    """What everybody may see of a process."""
    return Path(f"/proc/{pid}/{file}").read_text()


async def until(changes: AsyncIterator[SliceStatus], state: SliceState) -> SliceStatus:
    with anyio.fail_after(PATIENCE_S):
        async for seen in changes:
            if seen.state is state:
                return seen
    pytest.fail(f"the platform closed before a slice was {state}")


async def until_gone(platform: LocalPlatform, changes: AsyncIterator[SliceStatus]) -> None:
    while await platform.list_all_slices():
        await until(changes, SliceState.DELETING)
