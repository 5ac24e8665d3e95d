"""Pools as their operators want them: the configuration as values."""

from dataclasses import dataclass, field
from datetime import tzinfo
from enum import StrEnum
from typing import TypeAlias

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Duration

_MINUTE = Duration.of(minutes=1)


class Strategy(StrEnum):
    """Order in which placements are tried for a purchase."""

    PRIORITY = "priority"
    ROUND_ROBIN = "round-robin"
    AVAILABILITY = "availability"
    COST = "cost"


@dataclass(frozen=True, slots=True)
class Offer:
    """A provider the pool may buy from. A lower `priority` is asked first; `weight` is its share in turns."""

    provider: str
    instance_type: str
    regions: tuple[str, ...] = ("",)
    zones: tuple[str, ...] = ("",)
    priority: int = 100
    weight: int = 1
    spot: bool = False
    reservation: str = ""


@dataclass(frozen=True, slots=True)
class CountOrPercent:
    """A count, or a share of the pool in percent. A share is rounded down, yet never to nothing, unless it is nothing."""

    count: int | None = None
    percent: float = 0.0

    def of(self, size: int) -> int:
        if self.count is not None:
            return self.count
        return max(1, int(size * self.percent / 100)) if self.percent else 0

    def __str__(self) -> str:
        return str(self.count) if self.count is not None else f"{self.percent:g}%"


@dataclass(frozen=True, slots=True)
class Window:
    """Times of the week, in minutes of a day; one that ends before it begins goes over midnight. `days`: Monday is 0."""

    days: frozenset[int]
    start: int
    end: int
    zone: tzinfo


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit on nodes out of service at once, or with `per`, on repairs that begin in that time.

    It counts only repairs for its `reasons` (signatures, "" for all) in its `zones`, while one of its `windows` is open.
    `each_zone` counts every zone for itself.
    """

    most: CountOrPercent
    per: Duration | None = None
    reasons: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    each_zone: bool = False
    windows: tuple[Window, ...] = ()


@dataclass(frozen=True, slots=True)
class RepairLadder:
    """Escalation of remediation: tries of one rung before the next, and the pause between them.

    `memory` is how long a treatment counts. A host that cost `lemon` nodes in `host_memory` is not bought again.
    """

    tries: int = 2
    pause: Duration = field(default=_MINUTE * 10)
    memory: Duration = field(default=Duration.of(hours=7 * 24))
    most: int = 5
    lemon: int = 2
    host_memory: Duration = field(default=Duration.of(hours=30 * 24))


@dataclass(frozen=True, slots=True)
class CommonCause:
    """When many nodes fail alike: `share` of the pool but at least `least`, within `within`; then everything waits `settle`."""

    share: float = 20.0
    least: int = 3
    within: Duration = field(default=_MINUTE * 10)
    settle: Duration = field(default=_MINUTE * 5)


@dataclass(frozen=True, slots=True)
class Timing:
    """Time limits of a node's states. `verify` is the time for which a new node must be healthy before it is active."""

    heartbeat: Duration = field(default=Duration.of(seconds=30))
    silence: Duration = field(default=Duration.of(seconds=90))
    boot: Duration = field(default=_MINUTE * 15)
    verify: Duration = field(default=Duration(0))
    verify_most: Duration = field(default=_MINUTE * 60)
    drain: Duration = field(default=_MINUTE * 60)
    treat: Duration = field(default=_MINUTE * 20)


@dataclass(frozen=True, slots=True)
class HealthRules:
    """When a node counts as unhealthy and what is done about it. `policy` names the rules that judge its events."""

    unhealthy_after: int = 2
    auto_replace: bool = True
    policy: str = "default"
    # Sightings within this time count together; those closer than `burst` are one.
    window: Duration = field(default=Duration.of(hours=24))
    burst: Duration = field(default=_MINUTE * 3)
    # Remedies that wait for a person.
    approval: frozenset[Remedy] = frozenset()
    budgets: tuple[Budget, ...] = (Budget(CountOrPercent(percent=10)),)
    cause: CommonCause = CommonCause()
    ladder: RepairLadder = RepairLadder()


@dataclass(frozen=True, slots=True)
class ReactiveAutoscaler:
    """One node more above `up` percent utilisation, one less below `down`."""

    up: float = 80.0
    down: float = 20.0


@dataclass(frozen=True, slots=True)
class QueueAutoscaler:
    """Sizes the pool for pending and running jobs."""

    jobs_per_node: int = 10


@dataclass(frozen=True, slots=True)
class ScheduleSpan:
    """A window in which other limits hold."""

    window: Window
    min_nodes: int
    max_nodes: int


@dataclass(frozen=True, slots=True)
class ScheduledAutoscaler:
    """Limits by the clock; within them the fallback decides."""

    spans: tuple[ScheduleSpan, ...]
    fallback: "Autoscaler | None" = None


@dataclass(frozen=True, slots=True)
class PredictiveAutoscaler:
    """Follows the trend of the last `lookback` samples of utilisation, `growth` times as far, towards `goal` percent."""

    lookback: int = 10
    growth: float = 1.2
    threshold: float = 80.0
    goal: float = 70.0
    fallback: "Autoscaler | None" = None


class CompositeMode(StrEnum):
    """Function by which a composite joins the sizes of its parts."""

    MAX = "max"
    MIN = "min"
    AVG = "avg"


@dataclass(frozen=True, slots=True)
class CompositeAutoscaler:
    """Several autoscalers at once."""

    mode: CompositeMode
    parts: tuple["Autoscaler", ...]


Autoscaler: TypeAlias = (
    ReactiveAutoscaler | QueueAutoscaler | ScheduledAutoscaler | PredictiveAutoscaler | CompositeAutoscaler
)


@dataclass(frozen=True, slots=True)
class Scaling:
    """The size of a pool. Without an autoscaler it has `least` nodes, or what an operator asked for.

    `surge` is how many nodes beyond `most` replacements may bring; a shrinking waits until the smaller size was enough for
    `stable`; one change is at most `step_up` or `step_down` nodes.
    """

    least: int = 0
    most: int = 1
    spares: int = 0
    surge: CountOrPercent = CountOrPercent(percent=10)
    cooldown: Duration = field(default=_MINUTE * 5)
    stable: Duration = field(default=_MINUTE * 5)
    step_up: int = 100
    step_down: int = 10
    autoscaler: Autoscaler | None = None


@dataclass(frozen=True, slots=True)
class SpendLimits:
    """Brakes on buying. `per_hour` machines within an hour; `price` dollars an hour for one, `total` for the pool; 0 is none.

    `breaker` machines in a row that did not come up stop buying, but for one at a time.
    """

    per_hour: int = 100
    price: float = 0.0
    total: float = 0.0
    breaker: int = 3


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Installation of the agent on a new machine by commands over SSH. Without commands the image contains an agent.

    `first_contact` trusts the first host key of a machine. Otherwise the machine must have the key that it was given.
    """

    commands: tuple[str, ...] = ()
    user: str = "ubuntu"
    key_path: str = ""
    port: int = 22
    first_contact: bool = False


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """Nodes of one shape that are kept between a least and a most."""

    name: str
    offers: tuple[Offer, ...]
    strategy: Strategy = Strategy.PRIORITY
    scaling: Scaling = Scaling()
    health: HealthRules = HealthRules()
    timing: Timing = Timing()
    spending: SpendLimits = SpendLimits()
    bootstrap: Bootstrap = Bootstrap()
    labels: tuple[tuple[str, str], ...] = ()
    ssh_keys: tuple[str, ...] = ()
    image: str = ""
    # Agents of machines that navarch did not buy may join the pool.
    adopt: bool = False
