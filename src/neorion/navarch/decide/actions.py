"""Actions of a plan, each with its sentence. An action is complete: the applier decides nothing."""

from dataclasses import dataclass
from typing import TypeAlias

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Instant
from neorion.navarch.model import (
    DesiredSize,
    Hold,
    NodeId,
    NodeState,
    Placement,
    RepairId,
    RepairStep,
)

# No repair: the node is bought for the pool itself.
NOBODY = RepairId("")


@dataclass(frozen=True, slots=True)
class MoveNode:
    """The node comes into another state."""

    node: NodeId
    to: NodeState
    why: str

    @property
    def sentence(self) -> str:
        return f"{self.node} becomes {self.to.value}: {self.why}."


@dataclass(frozen=True, slots=True)
class FailNode:
    """A new machine that did not come up well: it goes, and the pool remembers that one failed."""

    node: NodeId
    why: str

    @property
    def sentence(self) -> str:
        return f"{self.node} is given back: {self.why}."


@dataclass(frozen=True, slots=True)
class RetireNode:
    """A node too many: it is cordoned, drained and given back."""

    node: NodeId
    why: str

    @property
    def sentence(self) -> str:
        return f"{self.node} is retired: {self.why}."


@dataclass(frozen=True, slots=True)
class ClearAilment:
    """Clears an ailment that was not seen for long enough."""

    node: NodeId
    why: str

    @property
    def sentence(self) -> str:
        return f"{self.node} counts as healthy again: {self.why}."


@dataclass(frozen=True, slots=True)
class ReportSilence:
    """The node's agent has not been heard for too long; to be judged like any other event."""

    node: NodeId
    since: Instant

    @property
    def sentence(self) -> str:
        return f"{self.node} has not been heard since {self.since}."


@dataclass(frozen=True, slots=True)
class OpenRepair:
    """The node needs this remedy. Whether it may have it now is decided when it waits."""

    node: NodeId
    remedy: Remedy
    signature: str
    why: str

    @property
    def sentence(self) -> str:
        return f"{self.node} needs {self.remedy.value}: {self.why}."


@dataclass(frozen=True, slots=True)
class AdvanceRepair:
    """The repair comes into its next step; `swap` is decided once, when it leaves CORDONING."""

    repair: RepairId
    to: RepairStep
    why: str
    swap: bool = True

    @property
    def sentence(self) -> str:
        return f"{self.repair} goes on to {self.to.value}: {self.why}."


@dataclass(frozen=True, slots=True)
class AssignReplacement:
    """Assigns the node that replaces another. An empty `node` removes a successor that did not come up."""

    repair: RepairId
    node: NodeId
    why: str

    @property
    def sentence(self) -> str:
        return f"{self.repair}: {self.why}{f' ({self.node})' if self.node else ''}."


@dataclass(frozen=True, slots=True)
class ProvisionNode:
    """One machine, at this place, as a spare or as the successor of a repair's node."""

    pool: str
    place: Placement
    why: str
    spare: bool = False
    repair: RepairId = NOBODY

    @property
    def sentence(self) -> str:
        place = self.place
        where = "/".join(part for part in (place.provider, place.region, place.zone) if part)
        price = f" at {place.price:g} dollars an hour" if place.price else ""
        return f"{self.pool} buys a {place.instance_type} from {where}{price}: {self.why}."


@dataclass(frozen=True, slots=True)
class SetDesiredSize:
    """The pool is to have this many nodes."""

    pool: str
    size: int
    by: str

    @property
    def sentence(self) -> str:
        return f"{self.pool} wants {self.size} nodes: {self.by}."


Action: TypeAlias = (
    MoveNode
    | FailNode
    | RetireNode
    | ClearAilment
    | ReportSilence
    | OpenRepair
    | AdvanceRepair
    | AssignReplacement
    | ProvisionNode
    | SetDesiredSize
)


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """Actions for one pool now, holds on the others, and the time of the next plan if nothing changes."""

    actions: tuple[Action, ...] = ()
    holds: tuple[Hold, ...] = ()
    wish: DesiredSize | None = None
    wake_at: Instant | None = None
