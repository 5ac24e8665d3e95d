"""A simulated machine, and the command that starts its worker."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from neorion.iris.model import Resources, SliceId
from neorion.iris.ports import MACHINE_ENV, SliceRequest


@dataclass(frozen=True, slots=True)
class LocalMachine:
    """One machine of a slice. `folder` is the worker's own and goes with the slice."""

    slice: SliceId
    group: str
    host: str
    shape: Resources
    attributes: tuple[tuple[str, str], ...]
    controller: str
    folder: Path

    @property
    def mark(self) -> tuple[str, str]:
        """An environment variable that is unique to this machine, also among clusters of other users."""
        return MACHINE_ENV, str(self.folder)

    @property
    def log(self) -> Path:
        return self.folder / "worker.log"


# The program of a machine. Its standard input is the token and then the end; without a token it must end by itself.
Launch = Callable[[LocalMachine], Sequence[str]]
# Removes what a machine started outside of its own processes. Its folder is still there.
Cleanup = Callable[[LocalMachine], Awaitable[None]]


def machines(order: SliceRequest, folder: Path) -> list[LocalMachine]:
    return [
        LocalMachine(
            slice=order.id,
            group=order.group,
            host=f"{order.id}-{number}",
            shape=order.shape,
            attributes=order.attributes,
            controller=order.controller,
            folder=folder / str(number),
        )
        for number in range(order.machines)
    ]


def worker_command(machine: LocalMachine) -> Sequence[str]:
    """`python -m neorion.iris worker serve …`, with this Python."""
    shape = machine.shape
    flags = {
        "--controller": machine.controller,
        "--slice": machine.slice,
        # They are all this one: so their tasks can meet, and do not get in the way of each other's ports.
        "--host": "127.0.0.1",
        "--folder": str(machine.folder),
        "--log-file": str(machine.log),
        "--cpu": f"{shape.cpu_milli}m",
        "--memory": str(shape.memory),
        "--disk": str(shape.disk),
        "--gpus": str(shape.gpus),
        "--gpu-variant": shape.gpu_variant,
    }
    command = [sys.executable, "-P", "-m", "neorion.iris", "worker", "serve", "--token-stdin"]
    command += [f"{flag}={value}" for flag, value in flags.items()]
    return [*command, *(f"--attribute={key}={value}" for key, value in machine.attributes)]
