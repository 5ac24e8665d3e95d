from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from neorion.keel.base import Id, Instant


class IntentId(Id):
    """The decision to buy one machine. It is the client token, or the machine's name: whatever the cloud knows again."""

    __slots__ = ()
    prefix = "buy"


class MachineId(str):
    """The cloud's own id of an instance."""

    __slots__ = ()


class MachineState(StrEnum):
    """PENDING may still fail; STOPPING and GONE never come back."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    GONE = "gone"


class Capability(StrEnum):
    """What a cloud can do besides selling machines. What it cannot is absent, never an error at run time."""

    REBOOT = "reboot"
    SPOT = "spot"
    RESERVATION = "reservation"
    # It tells prices and what is to be had now.
    OFFERINGS = "offerings"


@dataclass(frozen=True, slots=True)
class Intent:
    """One machine to be bought, complete: the adapter chooses nothing.

    `owner` is the installation that buys and `labels` come back with the machine, where the cloud has tags. `zone` may
    be "" where the cloud knows only regions. `startup` is the script of its first boot.
    """

    id: IntentId
    owner: str
    instance_type: str
    region: str
    zone: str = ""
    spot: bool = False
    reservation: str = ""
    image: str = ""
    ssh_keys: tuple[str, ...] = ()
    startup: str = ""
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine as its cloud lists it. `host` is the physical machine below, where the cloud tells."""

    id: MachineId
    intent: IntentId
    owner: str
    state: MachineState
    instance_type: str
    region: str
    zone: str = ""
    name: str = ""
    address: str = ""
    private_address: str = ""
    host: str = ""
    spot: bool = False
    created: Instant | None = None


@dataclass(frozen=True, slots=True)
class Offering:
    """What a cloud asks for an instance type, in dollars an hour, and whether it has any now; None where it does not tell."""

    instance_type: str
    region: str
    price: float
    zone: str = ""
    spot: bool = False
    available: bool | None = True


class Provider(Protocol):
    """A cloud. Refusals are those of `refusals`; everything else an adapter raises is a defect.

    Machines of one owner are never shown to another, and a machine without an owner's tag is nobody's.
    """

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> frozenset[Capability]: ...

    async def provision(self, intent: Intent) -> Machine:
        """Buys the machine of this intent, once: asked again, it returns the same machine.

        Does not wait for the machine to boot. `unknown_outcome` where nobody can say whether it was bought; ask again with the
        same intent. An intent whose machine is gone is answered with that machine, gone, for as long as the cloud remembers it.
        """
        ...

    async def list(self, owner: str) -> Sequence[Machine]:
        """Every machine of this owner that is not gone, paged through to the end; a new one may be missing for a while."""
        ...

    async def describe(self, machine: MachineId) -> Machine:
        """`no_machine` where the cloud knows none, or has forgotten it."""
        ...

    async def terminate(self, machine: MachineId) -> None:
        """Asks for its end. Repeat until `no_machine`, or until it is described as gone."""
        ...

    async def reboot(self, machine: MachineId) -> None:
        """Only where REBOOT is among the capabilities."""
        ...

    async def offerings(self, instance_types: Sequence[str]) -> Sequence[Offering]:
        """Prices and stock; nothing where OFFERINGS is not among the capabilities."""
        ...
