"""Resources that a task requests and a worker has, as exact whole numbers."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Resources:
    """Cores in thousandths, memory and disk in bytes, GPUs by count and variant ("" means any)."""

    cpu_milli: int = 0
    memory: int = 0
    disk: int = 0
    gpus: int = 0
    gpu_variant: str = ""

    def fits(self, free: Self) -> bool:
        return (
            self.cpu_milli <= free.cpu_milli
            and self.memory <= free.memory
            and self.disk <= free.disk
            and self.gpus <= free.gpus
            and (not self.gpus or self.gpu_variant in ("", free.gpu_variant))
        )

    def __add__(self, other: Self) -> Self:
        return self._with(other, 1)

    def __sub__(self, other: Self) -> Self:
        """The difference may be negative, which shows by how much a request is too large."""
        return self._with(other, -1)

    def times(self, count: int) -> Self:
        return type(self)(
            self.cpu_milli * count,
            self.memory * count,
            self.disk * count,
            self.gpus * count,
            self.gpu_variant,
        )

    def _with(self, other: Self, sign: int) -> Self:
        return type(self)(
            self.cpu_milli + sign * other.cpu_milli,
            self.memory + sign * other.memory,
            self.disk + sign * other.disk,
            self.gpus + sign * other.gpus,
            self.gpu_variant or other.gpu_variant,
        )
