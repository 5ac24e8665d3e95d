"""GPU models, and the models and numbers of GPUs in instance types."""

import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from neorion.keel.base import NotFound, did_you_mean


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One model of GPU, as its data sheet describes it."""

    name: str
    memory_gib: int
    slowdown_celsius: int
    nvlinks: int
    infiniband_ports: int


@dataclass(frozen=True, slots=True)
class GpuShape:
    """The GPUs of an instance type."""

    model: GpuModel
    gpus: int


def gpu_model(name: str) -> GpuModel:
    found = _MODELS.get(name)
    if found is None:
        raise NotFound(
            "gpu.no_model", f"The GPU model {name[:40]!r} does not exist.", hint=did_you_mean(name, _MODELS)
        )
    return found


def shape_of(instance_type: str) -> GpuShape | None:
    """The GPUs of an instance type; None for a type that is not in the table."""
    return _SHAPES.get(instance_type)


def _read() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__ or __name__).joinpath("models.toml").read_text("utf-8"))


_TABLES: Final = _read()
_MODELS: Final = {name: GpuModel(name, **row) for name, row in _TABLES["model"].items()}
_SHAPES: Final = {
    name: GpuShape(_MODELS[model], gpus) for name, (model, gpus) in _TABLES["instance_type"].items()
}
