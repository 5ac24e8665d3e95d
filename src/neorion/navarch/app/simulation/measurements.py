"""Measurements of a run: the machines' real state, and the control plane's knowledge and actions."""

from dataclasses import dataclass, field
from statistics import quantiles
from typing import Final

from msgspec import Struct

from neorion.keel.base import Duration, Instant
from neorion.navarch.app.simulation.agents import SimulatedAgent
from neorion.navarch.app.simulation.failure_modes import FailureMode
from neorion.navarch.app.simulation.simulated_fleet import SimulatedFleet
from neorion.navarch.model import Node, NodeState, Purchase, Repair, RepairStep

EVERY: Final = Duration.of(minutes=5)
_DOWN: Final = (NodeState.CORDONED, NodeState.DRAINING, NodeState.DRAINED)


class Sample(Struct, frozen=True):
    """The fleet at one moment. `well` are nodes that serve and have nothing wrong with them in truth."""

    hours: float
    wanted: int
    active: int
    well: int
    down: int
    machines: int


class Percentiles(Struct, frozen=True):
    """Seconds: how many, the middle, nearly all, all."""

    count: int
    median: float
    p95: float
    most: float

    @classmethod
    def of(cls, seconds: list[float]) -> "Percentiles":
        if not seconds:
            return cls(0, 0.0, 0.0, 0.0)
        # Of few values, nearly all of them is never more than all.
        cuts = quantiles(seconds, n=20, method="inclusive") if len(seconds) > 1 else seconds * 19
        return cls(len(seconds), round(cuts[9], 3), round(cuts[18], 3), round(max(seconds), 3))


class RunResult(Struct, frozen=True):
    """Result of one run. `holds` are minutes of waiting by reason, `broken` the invariant that ended it, if one did.

    `availability` is the share of wanted nodes that served, `goodput` the share that served and were well.
    """

    seed: int
    hours: float
    availability: float
    goodput: float
    machine_hours: float
    dollars: float
    purchases: int
    lives: int
    happened: dict[str, int]
    detection: Percentiles
    cordon: Percentiles
    repairs: dict[str, Percentiles]
    holds: dict[str, float]
    samples: list[Sample]
    broken: str = ""


@dataclass(slots=True)
class _Times:
    detection: list[float] = field(default_factory=list[float])
    cordon: list[float] = field(default_factory=list[float])
    repairs: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    holds: dict[str, float] = field(default_factory=dict[str, float])


@dataclass(slots=True)
class _Fault:
    """A node's failure, its begin, and the repair steps that it reached for the first time."""

    at: Instant
    reached: set[RepairStep] = field(default_factory=set[RepairStep])


class RunRecorder:
    """Records events of the control plane and injected failures, and samples the fleet now and then."""

    def __init__(self, stage: SimulatedFleet) -> None:
        self._stage = stage
        self._struck: dict[str, _Fault] = {}
        self._times = _Times()
        self._samples: list[Sample] = []
        self._began = stage.world.clock.now()
        stage.watch = self._on_change
        stage.storm.watchers.append(self._remember)

    async def run(self) -> None:
        while True:
            await self._stage.world.clock.sleep(EVERY)
            self._sample()

    def result(self, broken: str = "") -> RunResult:
        stage, samples = self._stage, self._samples
        wanted = sum(sample.wanted for sample in samples) or 1
        hours = sum(sample.machines for sample in samples) * EVERY.seconds / 3_600
        return RunResult(
            seed=stage.world.seed,
            hours=round(stage.world.clock.now().since(self._began).seconds / 3_600, 3),
            availability=round(sum(sample.active for sample in samples) / wanted, 6),
            goodput=round(sum(sample.well for sample in samples) / wanted, 6),
            machine_hours=round(hours, 3),
            dollars=round(hours * stage.scene.price, 2),
            purchases=sum(len(cloud.bought) for cloud in stage.clouds),
            lives=stage.lives,
            happened=dict(sorted(stage.storm.counts.items())),
            detection=Percentiles.of(self._times.detection),
            cordon=Percentiles.of(self._times.cordon),
            repairs={remedy: Percentiles.of(took) for remedy, took in sorted(self._times.repairs.items())},
            holds={code: round(minutes, 1) for code, minutes in sorted(self._times.holds.items())},
            samples=samples,
            broken=broken,
        )

    def _remember(self, member: SimulatedAgent, ill: FailureMode) -> None:
        """The first ill since it was last well is what detection is measured from."""
        if member.well:
            # Whatever befell it before has passed by itself, or was healed.
            self._struck.pop(member.node, None)
        if ill.blames_the_machine or ill.mute:
            self._struck.setdefault(member.node, _Fault(self._stage.world.clock.now()))

    def _on_change(self, record: Node | Repair | Purchase) -> None:
        """A repair that gave way to another, or that a killed control plane began, is no second detection of the fault."""
        fault = self._struck.get(record.node) if isinstance(record, Repair) else None
        if not isinstance(record, Repair) or fault is None or record.step in fault.reached:
            return
        fault.reached.add(record.step)
        took = record.since.since(fault.at).seconds
        if record.step is RepairStep.WAITING:
            self._times.detection.append(took)
        elif record.step is RepairStep.CORDONING:
            self._times.cordon.append(took)
        elif record.step is RepairStep.DONE:
            self._times.repairs.setdefault(record.remedy.value, []).append(took)
            del self._struck[record.node]

    def _sample(self) -> None:
        fleet = self._stage.fleet
        alive = sum(len(cloud.alive()) for cloud in self._stage.clouds)
        last = self._samples[-1] if self._samples else None
        if fleet is None:
            # The control plane is away, and nodes that served go on serving.
            wanted, active, down = (last.wanted, last.active, last.down) if last else (0, 0, 0)
        else:
            pools = fleet.context.state.pools.values()
            wanted = sum(max(pool_cache.state.wanted, 0) for pool_cache in pools)
            active = sum(node.state is NodeState.ACTIVE for node in fleet.context.state.nodes.values())
            down = sum(node.state in _DOWN for node in fleet.context.state.nodes.values())
            for pool_cache in pools:
                for hold in pool_cache.holds:
                    code = hold.code.value
                    self._times.holds[code] = self._times.holds.get(code, 0.0) + EVERY.seconds / 60
        well = self._stage.crowd.serving(fleet) if fleet is not None else (last.well if last else 0)
        hours = self._stage.world.clock.now().since(self._began).seconds / 3_600
        self._samples.append(Sample(round(hours, 3), wanted, active, min(well, wanted), down, alive))
