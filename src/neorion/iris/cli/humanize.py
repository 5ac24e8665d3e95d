"""Readable amounts and states of jobs."""

from typing import Final

from neorion.iris.client.job_names import size
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Instant, Quantity
from neorion.keel.cli.kit import Tone
from neorion.keel.cli.kit.humanize import short

TONES: Final = {
    "running": Tone.GOOD,
    "succeeded": Tone.GOOD,
    "ready": Tone.GOOD,
    "READY": Tone.GOOD,
    "pending": Tone.WARNING,
    "silent": Tone.WARNING,
    "failed": Tone.BAD,
    "lost": Tone.BAD,
    "FAILED": Tone.BAD,
}


def lasted(began: Instant | None, ended: Instant | None) -> str:
    return short(ended.since(began)) if began and ended else ""


def counts(by_state: dict[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in by_state.items())


def amounts(found: pb.Resources | None) -> dict[str, object]:
    """Nonzero resources, in the units of Kubernetes."""
    r = found or pb.Resources()
    every: dict[str, object] = {
        "cpu": Quantity(r.cpu_milli * 1_000_000),
        "memory": Quantity.of(r.memory_bytes),
        "disk": Quantity.of(r.disk_bytes),
        "gpu": f"{r.gpu_variant}:{r.gpus}" if r.gpu_variant else r.gpus,
    }
    return {name: amount for name, amount in every.items() if amount}


def resources(found: dict[str, object]) -> str:
    """Readable resources, with rounded sizes."""
    return ", ".join(
        f"{name} {size(amount.whole) if name in ('memory', 'disk') and isinstance(amount, Quantity) else amount}"
        for name, amount in found.items()
    )
