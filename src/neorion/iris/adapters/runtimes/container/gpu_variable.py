"""The variable by which NVIDIA's container runtime knows the GPUs of a container."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

VISIBLE_ENV: Final = "NVIDIA_VISIBLE_DEVICES"
# Images of CUDA set it to "all", and that runtime may be the engine's default.
NO_GPUS: Final[Mapping[str, str]] = MappingProxyType({VISIBLE_ENV: "void"})
