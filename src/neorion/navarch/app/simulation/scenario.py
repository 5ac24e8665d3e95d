"""Scenario of a simulation: a fleet, its failures and the duration."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from neorion.keel.base import Duration
from neorion.navarch.app.control_plane import LoopIntervals
from neorion.navarch.decide.policy import Policy
from neorion.navarch.model import PoolSpec

_DAY = Duration.of(hours=24)


@dataclass(frozen=True, slots=True)
class FailureRates:
    """Rates of failures. Rates are times a day for the whole fleet; chances are between 0 and 1.

    `wear` and `bugs` multiply the published rates of machines' faults and of applications' errors. A `cascade` is the chance
    that a fault reaches a neighbour in its rack. A `rollout` gives a share of the fleet one driver's fault within an hour.
    """

    wear: float = 1.0
    bugs: float = 1.0
    racks: float = 0.0
    rack_size: int = 8
    cascade: float = 0.0
    rollouts: float = 0.0
    rollout_share: float = 0.3
    outages: float = 0.0
    stockouts: float = 0.0
    quotas: float = 0.0
    blinds: float = 0.0
    lasting: Duration = field(default=Duration.of(minutes=30))
    lost: float = 0.0
    wedged: float = 0.0
    unfit: float = 0.0
    kills: float = 0.0
    kill_at_points: float = 0.0
    scheduler_lost: float = 0.0


@dataclass(frozen=True, slots=True)
class PlannedFailure:
    """An ill on order: so long after the fleet has come up, on so many machines, of one rack or of any."""

    at: Duration
    ill: str
    nodes: int = 1
    rack: int | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """One fleet on fake clouds. Troubles last for `span`; `calm` follows, in which everything must come right again."""

    specs: Mapping[str, PoolSpec]
    policies: Mapping[str, Policy]
    troubles: FailureRates = FailureRates()
    span: Duration = field(default=_DAY)
    calm: Duration = field(default=Duration.of(hours=3))
    boot: Duration = field(default=Duration.of(minutes=5))
    stop: Duration = field(default=Duration.of(minutes=1))
    lag: Duration = field(default=Duration.of(seconds=20))
    leaves_within: Duration = field(default=Duration.of(minutes=10))
    joins_within: Duration = field(default=Duration(0))
    # Dollars an hour for one machine; 0 is not known.
    price: float = 0.0
    blows: tuple[PlannedFailure, ...] = ()
    rhythm: LoopIntervals = field(default_factory=LoopIntervals)

    @property
    def providers(self) -> list[str]:
        return sorted({offer.provider for spec in self.specs.values() for offer in spec.offers})
