"""The settings of containers that run on the worker's own machine."""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final, Self

from neorion.iris.adapters.runtimes.container.engine import ContainerSpec
from neorion.iris.adapters.runtimes.container.messages import FOLDER_ENV
from neorion.iris.ports import MACHINE_ENV
from neorion.keel.base import Invalid

# Labels of everything that an engine makes: the worker and the attempt.
WORKER_LABEL: Final = "iris-worker"
ATTEMPT_LABEL: Final = "iris-attempt"
# The user of an image may write here in any image.
_RUNNER_FOLDER: Final = "/tmp/iris"  # noqa: S108 -- of a container with one task


class EngineName(StrEnum):
    """The engines that run containers on the worker's own machine."""

    CONTAINERD = "containerd"
    DOCKER = "docker"

    @property
    def usual_socket(self) -> Path:
        return _USUAL_SOCKETS[self]


_USUAL_SOCKETS: Final = {
    EngineName.CONTAINERD: Path("/run/containerd/containerd.sock"),
    EngineName.DOCKER: Path("/var/run/docker.sock"),
}


@dataclass(frozen=True, slots=True)
class HostMount:
    """A directory or file of the machine that all containers see."""

    source: Path
    target: PurePosixPath
    read_only: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads SOURCE:TARGET or SOURCE:TARGET:ro."""
        source, _, rest = text.partition(":")
        target, _, mode = rest.partition(":")
        if not source.startswith("/") or not target.startswith("/") or mode not in ("", "ro", "rw"):
            raise Invalid(
                "runtime.mount",
                f'"{text}" is not a valid mount.',
                hint="Write two absolute paths, as in /mnt/data:/data or /mnt/data:/data:ro.",
            )
        return cls(Path(source), PurePosixPath(target), mode == "ro")


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The common settings of one worker's containers.

    The worker's `folder` names the worker to the engine. The image holds Python with neorion. `machine` is the mark of
    the platform that started the worker, and containers carry it on.
    """

    folder: Path
    engine: EngineName
    socket: Path
    image: str
    mounts: tuple[HostMount, ...] = ()
    machine: str = ""

    @property
    def worker(self) -> str:
        return sha256(str(self.folder.absolute()).encode()).hexdigest()[:16]

    def variables(self, spec: ContainerSpec) -> dict[str, str]:
        """The environment of the runner. Tasks do not see it."""
        marks = {MACHINE_ENV: self.machine} if self.machine else {}
        return {**spec.variables, FOLDER_ENV: _RUNNER_FOLDER, **marks}
