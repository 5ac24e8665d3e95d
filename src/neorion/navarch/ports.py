"""What navarch needs from outside: a scheduler of work, signs of demand, a judge of events, someone to set machines up.

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
    """How far a drain has come. `left` is how much still runs, and `sentence` what it waits for."""

    done: bool
    left: int = 0
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class SchedulingStatus:
    """Whether the scheduler may place work on a node; if not, `sentence` says why."""

    schedulable: bool
    sentence: str = ""


class Scheduler(Protocol):
    """The scheduler of work on nodes: Kubernetes, another one behind a webhook, or none.

    Every verb states how the node should be and may be repeated. A node that the scheduler does not know yet is not an error.
    """

    async def cordon(self, node: Node, why: str) -> None:
        """Stop new work on the node. When this returns, the scheduler has applied it."""
        ...

    async def uncordon(self, node: Node) -> SchedulingStatus:
        """Allow new work on the node, and look whether the scheduler places any. Called again until it does."""
        ...

    async def drain(self, node: Node, why: str, left: Duration) -> DrainProgress:
        """Asks the work to leave, and tells how far that is. Called again until it is done; `left` is the patience that remains."""
        ...

    async def forget(self, node: Node) -> None:
        """Its machine is gone for good: nothing of it is to stay behind."""
        ...


class DemandSource(Protocol):
    """What users of a pool wait for. A part that is not known is None, never 0."""

    async def demand(self, pool: str) -> Demand: ...


class PolicyEngine(Protocol):
    """Judges situations by a policy, within limits of time and memory. Situations are those of `decide.policy`."""

    def sees(self, policy: str) -> frozenset[str]:
        """The variables that the policy's rules look at: a situation may leave out the others."""
        ...

    async def judge(self, policy: str, situations: Sequence[Mapping[str, Any]]) -> Sequence[PolicyResult]:
        """One verdict for each, in order. NotFound for a policy that does not exist."""
        ...


@dataclass(frozen=True, slots=True)
class SshTarget:
    """How a new machine is entered, and how it proves that it is the one.

    It was given a host key made of `seed`. With `first_contact` it was not: then the key that it shows first is believed, and
    is `host_key` from then on.
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
    """What came of a command: its status, or None and why it has none; and the end of what it said."""

    status: int | None
    output: str
    why: str = ""


class Shell(Protocol):
    """A machine that was entered. `host_key` is the one it showed."""

    host_key: str

    async def run(self, command: str) -> CommandResult: ...


class Bootstrapper(Protocol):
    """Whoever sets new machines up."""

    def startup(self, seed: bytes) -> str:
        """The script of a machine's first boot, which gives it the host key made of `seed`; always the same for one seed."""
        ...

    def enter(self, door: SshTarget) -> AbstractAsyncContextManager[Shell]:
        """Retry while it does not answer, or is not who it should be."""
        ...


class Gpu(Struct, frozen=True):
    """One GPU as a probe finds it now."""

    index: int
    uuid: str = ""
    model: str = ""
    temperature: float = 0.0
    power: float = 0.0
    utilisation: float = 0.0
    memory_used: int = 0


class Probe(Protocol):
    """What an agent looks at on its machine: the real driver's library, or a stand-in that somebody chose by name."""

    async def gpus(self) -> Sequence[Gpu]:
        """Every GPU there is now; fewer than expected is for the agent to notice. Retry where nobody can say."""
        ...

    async def watch(self, tell: Callable[[HealthEvent], None], every: Duration) -> None:
        """Tells what goes wrong, as it does; what must be looked for is looked for so often. Never ends by itself."""
        ...

    async def self_test(self) -> bool:
        """Whether the machine is fit for work, before it gets any."""
        ...

    async def treat(self, remedy: Remedy, gpu: int) -> None:
        """Resets a GPU, or reboots the machine."""
        ...
