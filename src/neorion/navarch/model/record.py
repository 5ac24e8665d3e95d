"""Records of navarch. Records are values: a change is a new record."""

from enum import StrEnum

from msgspec import Struct

from neorion.capacity.gpu import Remedy
from neorion.capacity.provider import IntentId, MachineId
from neorion.keel.base import Instant
from neorion.navarch.model.health import Ailment, Health
from neorion.navarch.model.ids import NodeId, RepairId
from neorion.navarch.model.state import NodeState, PurchaseState, RepairStep


class Origin(StrEnum):
    """Origin of a machine. A JOINED one was not bought by navarch, and is terminated only after a person's approval."""

    BOUGHT = "bought"
    JOINED = "joined"


class Placement(Struct, frozen=True, omit_defaults=True):
    """Provider, zone and type of a machine that exists or is to be bought. `price` is dollars an hour; 0 is unknown."""

    provider: str
    instance_type: str
    region: str = ""
    zone: str = ""
    spot: bool = False
    reservation: str = ""
    price: float = 0.0

    @property
    def where(self) -> tuple[str, str, str]:
        return self.provider, self.region, self.zone

    @property
    def scopes(self) -> tuple[str, str, str]:
        """From the narrowest to the widest: a refusal in one says nothing of the next.

        Machines that may be taken back and those of a reservation come from stocks of their own.
        """
        market = f"{'/spot' if self.spot else ''}{f'/{self.reservation}' if self.reservation else ''}"
        return (
            f"{self.provider}/{self.region}/{self.zone}/{self.instance_type}{market}",
            f"{self.provider}/{self.region}/{self.instance_type}",
            self.provider,
        )


class Node(Struct, frozen=True, omit_defaults=True):
    """One node. `since` is when it came into its state and `why` the reason; `born` is when it was ordered.

    `held` means that a person keeps it as it is: nothing is repaired, returned to work or given back by itself.
    """

    id: NodeId
    pool: str
    place: Placement
    born: Instant
    since: Instant
    state: NodeState = NodeState.ORDERED
    why: str = ""
    origin: Origin = Origin.BOUGHT
    purchase: IntentId = IntentId("")
    machine: MachineId = MachineId("")
    machine_name: str = ""
    kube_name: str = ""
    agent: str = ""
    host: str = ""
    address: str = ""
    gpus: int = 0
    spare: bool = False
    held: bool = False
    health: Health = Health.UNKNOWN
    ailment: Ailment | None = None
    # How many of its pool's setup commands it has behind it, and the host key that it showed first, if that was to be believed.
    set_up: int = 0
    host_key: str = ""
    # Of the machine's own secret: who joins in its name while it lives must know it.
    secret_digest: str = ""
    # The life of its kernel when its agent registered last.
    kernel_boot: str = ""
    # How far the events of each of its agent's last lives were taken.
    taken: dict[str, int] = {}
    # Since when it is to go for good, because the pool is too large.
    retiring: bool = False
    served: Instant | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names that its agent may use for it."""
        names = (str(self.id), str(self.machine), self.machine_name or str(self.purchase), self.kube_name)
        return tuple(dict.fromkeys(name for name in names if name))


class Purchase(Struct, frozen=True, omit_defaults=True):
    """The purchase of one machine: intent and result."""

    id: IntentId
    node: NodeId
    pool: str
    place: Placement
    intended: Instant
    state: PurchaseState = PurchaseState.INTENDED
    settled: Instant | None = None
    machine: MachineId = MachineId("")
    refusal: str = ""
    message: str = ""


class Repair(Struct, frozen=True, omit_defaults=True):
    """One node's way back to health, or out. `successor` takes its place; `swap` means that it comes before the drain."""

    id: RepairId
    node: NodeId
    pool: str
    remedy: Remedy
    signature: str
    why: str
    opened: Instant
    since: Instant
    step: RepairStep = RepairStep.WAITING
    successor: NodeId = NodeId("")
    swap: bool = True
    approved: bool = False
    by: str = ""
    host: str = ""
    # Why it stands still, if it does.
    hold: str = ""
    ended: Instant | None = None
    # When each step began, by its name.
    times: dict[str, Instant] = {}


class FailureStreak(Struct, frozen=True, omit_defaults=True):
    """A scope that refused, or a pool whose machines did not come up: `times` in a row, `at` the last time."""

    scope: str
    kind: str
    times: int
    at: Instant
    message: str = ""


class PoolState(Struct, frozen=True, omit_defaults=True):
    """State of a pool beyond its configuration. `wanted` is the last size that an operator or the autoscaler set."""

    name: str
    wanted: int = -1
    wanted_by: str = ""
    paused: str = ""
    scaled: Instant | None = None
    scaled_up: Instant | None = None
    turn: int = 0
    # Nodes that were silent at this time are no longer held as part of a mass silence: a person looked.
    released: Instant | None = None
    # Names of machines of others that were replaced. They join again when a person says so.
    barred: tuple[str, ...] = ()
