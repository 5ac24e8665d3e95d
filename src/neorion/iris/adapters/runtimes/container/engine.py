"""The port behind the container runtime: what makes, watches and removes containers."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from neorion.iris.adapters.runtimes.container.gang import Gang
from neorion.iris.model import AttemptId, ExitKind, Resources
from neorion.keel.base import Duration


class ContainerState(StrEnum):
    """Where a container is."""

    WAITING = "waiting"
    RUNNING = "running"
    EXITED = "exited"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """A container for one attempt. `variables` are the runner's own; `gpus` are the machine's, by number."""

    attempt: AttemptId
    resources: Resources
    gpus: tuple[str, ...]
    variables: Mapping[str, str]
    gang: Gang | None = None


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """A container as its engine knows it.

    `cause` is what the engine knows of its end, or of why it cannot begin; without one the exit code has to do.
    `final` says that a container that waits will never begin. `record` is what the runner left with the engine.
    """

    attempt: AttemptId
    state: ContainerState
    cause: ExitKind | None = None
    code: int = 0
    message: str = ""
    final: bool = False
    record: bytes = b""

    @property
    def over(self) -> bool:
        return self.state in (ContainerState.EXITED, ContainerState.GONE)


class ContainerEngine(Protocol):
    """Containers of one installation. Every verb is idempotent by attempt id."""

    @property
    def boot(self) -> str:
        """Names the present life of what containers run on: in the next one nothing of this one runs."""
        ...

    def leader_host(self, leader: AttemptId) -> str:
        """The name by which a gang finds its leader; "" where tasks are reached at the worker's address."""
        ...

    async def create(self, spec: ContainerSpec) -> None:
        """Makes and starts it. Retry where it may be tried again; other errors are final."""
        ...

    async def remove(self, attempt: AttemptId, grace: Duration) -> None:
        """Ends its processes, with force after the grace, and removes it. One that is not there is no error."""
        ...

    def changes(self) -> AsyncGenerator[Sequence[ContainerStatus], None]:
        """First every container that there is, then each change. One that is removed is GONE."""
        ...
