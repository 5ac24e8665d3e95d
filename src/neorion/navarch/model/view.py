"""Input of decisions: one pool at one moment, as values."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct

from neorion.keel.base import Instant
from neorion.navarch.model.health import HealthEvent
from neorion.navarch.model.ids import NodeId
from neorion.navarch.model.node_index import PoolNodeIndex
from neorion.navarch.model.record import FailureStreak, Node, Origin, Placement, PoolState, Purchase, Repair
from neorion.navarch.model.spec import PoolSpec
from neorion.navarch.model.state import NodeState


class NodeHeartbeat(Struct, frozen=True):
    """The latest of a node that is not worth writing down. `heard` is None until its agent spoke to this process.

    `tested` is what the agent's own self-test said: None while it has not ended. `treated` are the repairs it has carried out,
    `refused` those that it will not, and why.
    `machine_up` is what the scheduler or the cloud says of the machine of a silent agent, None while neither knows.
    `marked` says that the scheduler of its work knows that the node takes nothing new, and `waits` what its cordon or drain
    waits for.
    """

    heard: Instant | None = None
    marked: bool = False
    utilisation: float | None = None
    idle: Instant | None = None
    tested: bool | None = None
    treated: frozenset[str] = frozenset()
    refused: Mapping[str, str] = {}
    waits: str = ""
    machine_up: bool | None = None


_UNHEARD = NodeHeartbeat()
_SPEAKING = (NodeState.ACTIVE, NodeState.UNCORDONING, NodeState.SPARE, NodeState.VERIFYING)


# What starts together, by the GPUs of each member. Most work is a gang of one.
Gang: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Demand:
    """Demand of the pool's users. None is unknown, which differs from zero.

    `utilisation` is in percent; `samples` are its averages over the pool, the oldest first.
    """

    utilisation: float | None = None
    samples: tuple[float, ...] = ()
    pending: int | None = None
    running: int | None = None
    # GPUs in use on each node with work, by the scheduler's name of the node, and waiting work; empty where unknown.
    busy: Mapping[str, int] = field(default_factory=dict[str, int])
    waiting: tuple[Gang, ...] = ()


@dataclass(frozen=True, slots=True)
class Availability:
    """Price and availability of a placement. `available` is None where the provider does not report it."""

    price: float = 0.0
    available: bool | None = None


@dataclass(frozen=True, slots=True)
class DesiredSize:
    """A size that an autoscaler requested, with its time. Scaling down considers the recent ones."""

    at: Instant
    size: int


@dataclass(frozen=True)
class PoolView:
    """One pool. `repairs` are the open ones and those that still count; `purchases` those of the last hour and the open ones.

    Without slots, so that what follows from it is worked out once. `roll` goes on changing: a view is good until the next
    change.
    """

    spec: PoolSpec
    state: PoolState
    roll: PoolNodeIndex = field(default_factory=PoolNodeIndex)
    repairs: Sequence[Repair] = ()
    purchases: Sequence[Purchase] = ()
    heartbeats: Mapping[NodeId, NodeHeartbeat] = field(default_factory=dict[NodeId, NodeHeartbeat])
    # Stands in for the last word of nodes that have not spoken to this process yet.
    started: Instant | None = None
    demand: Demand = Demand()
    wishes: Sequence[DesiredSize] = ()
    # Where other pools have asked for machines and wait for the answer.
    elsewhere: Sequence[Placement] = ()
    # By scope; the pool's own stands under its name.
    troubles: Mapping[str, FailureStreak] = field(default_factory=dict[str, FailureStreak])
    stock: Mapping[str, Availability] = field(default_factory=dict[str, Availability])
    events: Mapping[NodeId, Sequence[HealthEvent]] = field(
        default_factory=dict[NodeId, Sequence[HealthEvent]]
    )

    def heartbeat(self, node: NodeId) -> NodeHeartbeat:
        return self.heartbeats.get(node, _UNHEARD)

    @property
    def nodes(self) -> Collection[Node]:
        return self.roll.nodes.values()

    def node(self, node: NodeId) -> Node | None:
        return self.roll.nodes.get(node)

    def successor(self, repair: Repair) -> Node | None:
        """The node that replaces the repair's node; None if there is none yet, or if it is leaving."""
        found = self.node(repair.successor) if repair.successor else None
        return None if found is None or found.state.leaving else found

    @cached_property
    def open_repairs(self) -> Sequence[Repair]:
        return [repair for repair in self.repairs if not repair.step.over]

    @cached_property
    def unsettled(self) -> Sequence[Node]:
        """All but those that serve in good health."""
        return list(self.roll.unsettled.values())

    @cached_property
    def paid(self) -> Sequence[Node]:
        """Unsettled nodes that navarch bought and that are not leaving. Adopted nodes count against no limit."""
        return [node for node in self.unsettled if node.origin is Origin.BOUGHT and not node.state.leaving]

    @cached_property
    def settled(self) -> int:
        """Number of nodes that are active and healthy."""
        return self.roll.settled.total()

    def speaking(self) -> Iterator[tuple[Node, Instant]]:
        """Nodes that should send heartbeats, with the time of the last one, the longest silent first."""
        for name in self.roll.speakers:
            node = self.roll.nodes[name]
            heard = self.heartbeat(name).heard or self.started
            if node.state in _SPEAKING and heard is not None:
                yield node, heard

    @cached_property
    def serving(self) -> int:
        return self.settled + sum(node.state.serving for node in self.unsettled)

    @cached_property
    def dollars(self) -> float:
        """Price of its machines per hour, including those that are being created."""
        settled = sum(place.price * count for place, count in self.roll.settled.items())
        return settled + sum(node.place.price for node in self.unsettled if not node.state.leaving)

    @cached_property
    def spread(self) -> Counter[tuple[str, str, str]]:
        """Number of nodes by placement."""
        found = Counter(node.place.where for node in self.unsettled)
        for place, count in self.roll.settled.items():
            found[place.where] += count
        return found
