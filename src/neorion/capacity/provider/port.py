from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from neorion.keel.base import Id, Instant


class IntentId(Id):
    """The decision to buy one machine.

    It is the client token or the name of the machine, by which the cloud recognises it.
    """

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
    """Optional features of a cloud. A missing one is never an error at run time."""

    REBOOT = "reboot"
    SPOT = "spot"
    RESERVATION = "reservation"
    # Returns prices and stock.
    OFFERINGS = "offerings"


@dataclass(frozen=True, slots=True)
class Intent:
    """The complete description of one machine to buy: the adapter chooses nothing.

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
    """A machine as its cloud lists it. `host` is the physical machine, if the cloud reports it."""

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
    """The price of an instance type in dollars per hour, and its availability; None if the cloud does not report it."""

    instance_type: str
    region: str
    price: float
    zone: str = ""
    spot: bool = False
    available: bool | None = True


class Provider(Protocol):
    """A cloud. It raises the errors of `errors`; any other exception is a defect of the adapter.

    Lists contain only machines of the given owner, and machines without an owner's tag belong to no owner.
    """

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> frozenset[Capability]: ...

    async def provision(self, intent: Intent) -> Machine:
        """Buys the machine of this intent once: a repeated call returns the same machine.

        Does not wait for the machine to boot. Raises `unknown_outcome` if the purchase may have succeeded; repeat it
        with the same intent. If the machine of the intent is gone, it is returned as gone, while the cloud still has
        its record.
        """
        ...

    async def list(self, owner: str) -> Sequence[Machine]:
        """Lists all machines of this owner that are not gone; a new one may be missing for a while."""
        ...

    async def describe(self, machine: MachineId) -> Machine:
        """Raises `no_machine` if the cloud has no record of the machine."""
        ...

    async def terminate(self, machine: MachineId) -> None:
        """Requests the end of the machine. Repeat until `no_machine`, or until it is described as gone."""
        ...

    async def reboot(self, machine: MachineId) -> None:
        """Reboots a machine. Only with the capability REBOOT."""
        ...

    async def offerings(self, instance_types: Sequence[str]) -> Sequence[Offering]:
        """Returns prices and stock; empty without the capability OFFERINGS."""
        ...
