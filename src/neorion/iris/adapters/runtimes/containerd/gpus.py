"""The ways in which containers of containerd get GPUs. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from neorion.iris.adapters.runtimes.container.gpu_variable import NO_GPUS, VISIBLE_ENV
from neorion.keel.base import Invalid

NVIDIA_HANDLER: Final = "nvidia"
_CONTROL: Final = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")


class _Runtimes(msgspec.Struct, frozen=True):
    runtimes: dict[str, msgspec.Raw] = {}


class _Config(msgspec.Struct, frozen=True):
    containerd: _Runtimes = _Runtimes()
    cdi: bool = msgspec.field(default=False, name="enableCDI")


@dataclass(frozen=True, slots=True)
class GpuSupport:
    """The ways that one containerd offers. `cdi` also means that a CDI specification of NVIDIA exists."""

    handler: bool = False
    cdi: bool = False


@dataclass(frozen=True, slots=True)
class GpuAccess:
    """The settings of one container that bring its GPUs."""

    handler: str = ""
    variables: tuple[tuple[str, str], ...] = tuple(NO_GPUS.items())
    devices: tuple[str, ...] = ()
    cdi: tuple[str, ...] = ()


def gpu_support(config: str, *, has_cdi_spec: bool) -> GpuSupport:
    """Reads the configuration of containerd. Versions before 1.7 ignore CDI devices without a word."""
    found = msgspec.json.decode(config, type=_Config)
    return GpuSupport(NVIDIA_HANDLER in found.containerd.runtimes, has_cdi_spec and found.cdi)


def gpu_access(gpus: Sequence[str], support: GpuSupport, exists: Callable[[str], bool]) -> GpuAccess:
    """Prefers CDI, then the handler of NVIDIA, then bare device files."""
    if not gpus:
        return GpuAccess()
    if support.cdi:
        return GpuAccess(cdi=tuple(f"nvidia.com/gpu={gpu}" for gpu in gpus))
    if support.handler:
        return GpuAccess(NVIDIA_HANDLER, ((VISIBLE_ENV, ",".join(gpus)),))
    cards = tuple(f"/dev/nvidia{gpu}" for gpu in gpus)
    if absent := [path for path in cards if not exists(path)]:
        raise Invalid(
            "runtime.no_gpu",
            f"The machine has no {absent[0]}, and its containerd has neither CDI nor a runtime nvidia.",
            hint="Install NVIDIA's driver and container toolkit on the machine.",
        )
    return GpuAccess(devices=(*cards, *filter(exists, _CONTROL)))
