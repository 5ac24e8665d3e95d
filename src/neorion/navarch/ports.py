"""Ports of navarch: the scheduler of work, demand, the policy engine, the bootstrap of machines, and probes.

The port to clouds is `neorion.capacity.provider.Provider`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec import Struct

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Duration
from neorion.navarch.model import Demand, HealthEvent, Node, PolicyResult


@dataclass(frozen=True, slots=True)
class DrainProgress:
    """Progress of a drain. `left` counts what still runs, and `sentence` names what the drain waits for."""

    done: bool
    left: int = 0
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class SchedulingStatus:
    """State of a node for the scheduler: whether it may place work there, and if not, `sentence` is the reason."""

    schedulable: bool
    sentence: str = ""


class Scheduler(Protocol):
    """The scheduler of work on nodes: Kubernetes, another one behind a webhook, or none.

    Every method states the desired state and may be repeated. A node that the scheduler does not know yet is not an error.
    """

    async def cordon(self, node: Node, why: str) -> None:
        """Stop new work on the node. When this returns, the scheduler has applied it."""
        ...

    async def uncordon(self, node: Node) -> SchedulingStatus:
        """Allow new work on the node, and check that the scheduler may place any. Called again until it may."""
        ...

    async def drain(self, node: Node, why: str, left: Duration) -> DrainProgress:
        """Ask the work to leave, and return the progress. Called again until it is done; `left` is the time that remains."""
        ...

    async def machine_up(self, node: Node) -> bool | None:
        """Return whether the scheduler reaches the node's machine by its own means, or None if it cannot tell."""
        ...

    async def forget(self, node: Node) -> None:
        """Remove what is kept of the node: its machine is gone for good."""
        ...


class DemandSource(Protocol):
    """A source of demand for a pool. A part that is not known is None, never 0."""

    async def demand(self, pool: str) -> Demand: ...


class PolicyEngine(Protocol):
    """An engine that evaluates policies within limits of time and memory. Situations are those of `decide.policy`."""

    def variables(self, policy: str) -> frozenset[str]:
        """Return the variables that the policy's rules use. A situation may leave out the others."""
        ...

    async def evaluate(self, policy: str, situations: Sequence[Mapping[str, Any]]) -> Sequence[PolicyResult]:
        """Return one result for each situation, in order. NotFound for a policy that does not exist."""
        ...


@dataclass(frozen=True, slots=True)
class SshTarget:
    """The address and the expected host key of a new machine.

    The machine was given a host key derived from `seed`. With `first_contact` it was not. Then its first key is accepted and
    becomes `host_key`.
    """

    addresses: tuple[str, ...]
    port: int
    user: str
    key_path: str
    seed: bytes
    host_key: str = ""
    first_contact: bool = False


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command: its status and the end of its output. Without a status, `why` is the reason."""

    status: int | None
    output: str
    why: str = ""


class Shell(Protocol):
    """An open session on a machine. `host_key` is the key of the machine."""

    host_key: str

    async def run(self, command: str) -> CommandResult: ...


class Bootstrapper(Protocol):
    """The bootstrap of new machines."""

    def startup(self, seed: bytes) -> str:
        """Return the script of the first boot. It installs the host key derived from `seed`, the same for the same seed."""
        ...

    def enter(self, door: SshTarget) -> AbstractAsyncContextManager[Shell]:
        """Open a session. Retry if the machine does not answer, or has another host key."""
        ...


class Gpu(Struct, frozen=True):
    """One GPU as the probe reads it now."""

    index: int
    uuid: str = ""
    model: str = ""
    temperature: float = 0.0
    power: float = 0.0
    utilisation: float = 0.0
    memory_used: int = 0


class Probe(Protocol):
    """The hardware that an agent reads: through the library of the driver, or simulated by configuration."""

    async def gpus(self) -> Sequence[Gpu]:
        """Return every GPU that is present. The agent compares the count. Retry if the driver does not answer."""
        ...

    async def watch(self, tell: Callable[[HealthEvent], None], every: Duration) -> None:
        """Report faults as they occur. What has to be polled is polled at this interval. Runs until cancelled."""
        ...

    async def self_test(self) -> bool:
        """Return whether the machine is fit for work."""
        ...

    async def treat(self, remedy: Remedy, gpu: int) -> None:
        """Reset a GPU, or reboot the machine."""
        ...
