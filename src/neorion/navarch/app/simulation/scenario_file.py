"""Files that describe a simulation."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from neorion.keel.base import Duration, did_you_mean
from neorion.keel.config import DurationField, Model, Problem, load
from neorion.navarch.adapters.config_file import ConfigFile, policies_of, pool_specs
from neorion.navarch.app.control_plane import LoopIntervals
from neorion.navarch.app.simulation.failure_modes import ILLS
from neorion.navarch.app.simulation.scenario import FailureRates, PlannedFailure, Scenario

Rate = Annotated[float, Field(ge=0, le=1_000)]
Chance = Annotated[float, Field(ge=0, lt=1)]


class FailureRatesModel(Model):
    """Rates of failures."""

    wear: Rate = Field(default=1.0, description="Times the published rate of machines' faults.")
    bugs: Rate = Field(default=1.0, description="Times the published rate of applications' errors.")
    racks: Rate = Field(default=0.0, description="Racks that fail as one, times a day.")
    rack_size: int = Field(default=8, ge=1, le=1_000, description="Machines in a rack.")
    cascade: Chance = Field(
        default=0.0, description="The chance that a fault reaches a neighbour in its rack."
    )
    rollouts: Rate = Field(
        default=0.0, description="Drivers that bring a fault to a part of the fleet, times a day."
    )
    rollout_share: Chance = Field(default=0.3, description="How large that part is.")
    outages: Rate = Field(default=0.0, description="Clouds that do not answer, times a day.")
    stockouts: Rate = Field(default=0.0, description="Clouds that have no machines, times a day.")
    quotas: Rate = Field(default=0.0, description="Quotas that are used up, times a day.")
    blinds: Rate = Field(default=0.0, description="Lists that leave machines out, times a day.")
    lasting: DurationField = Field(
        default=Duration.of(minutes=30), description="How long these last, on average."
    )
    lost_answers: Chance = Field(default=0.0, description="The chance that a cloud's answer is lost.")
    wedged: Chance = Field(default=0.0, description="The chance that a new machine never speaks.")
    unfit: Chance = Field(default=0.0, description="The chance that a new machine fails its own test.")
    kills: Rate = Field(default=0.0, description="Deaths of the control plane, times a day.")
    kill_at_points: Chance = Field(
        default=0.0, description="The chance that it dies at each of its fault points."
    )
    scheduler_lost: Chance = Field(
        default=0.0, description="The chance that a call to the scheduler or its answer is lost."
    )

    def value(self) -> FailureRates:
        given = self.model_dump(exclude={"lost_answers", "lasting"})
        return FailureRates(**given, lost=self.lost_answers, lasting=self.lasting)


class PlannedFailureModel(Model):
    """An ill on order."""

    at: DurationField = Field(description="How long after the fleet has come up.")
    ill: str = Field(description="Which, as in faulty-gpu.")
    nodes: int = Field(default=1, ge=1, le=100_000, description="On how many nodes.")
    rack: int | None = Field(default=None, ge=0, description="Only of this rack.")

    def problems(self) -> Iterable[Problem]:
        if self.ill not in ILLS:
            hint = did_you_mean(self.ill, ILLS) or f"They are: {', '.join(ILLS)}."
            yield Problem(("ill",), f'There is no ill "{self.ill[:40]}".', hint)


class ScenarioFile(Model):
    """One fleet and what happens to it; with `against`, two configurations under the same seeds."""

    name: str = Field(default="", description="What it is about.")
    config: str = Field(description="The configuration of the control plane; its clouds are played.")
    against: str = Field(default="", description="Another configuration to compare with.")
    duration: DurationField = Field(default=Duration.of(hours=24), description="How long things go wrong.")
    calm: DurationField = Field(
        default=Duration.of(hours=12), description="How long all may take to come right."
    )
    seeds: int = Field(default=3, ge=1, le=10_000, description="How many runs.")
    first_seed: int = Field(default=0, ge=0, description="The seed of the first.")
    price: float = Field(default=0.0, ge=0, description="Dollars an hour for one machine.")
    boot: DurationField = Field(
        default=Duration.of(minutes=5), description="How long a machine takes to boot."
    )
    work_leaves_within: DurationField = Field(
        default=Duration.of(minutes=10), description="How long work takes to leave a node."
    )
    nodes_join_within: DurationField = Field(
        default=Duration(0), description="How long a new node takes to join the scheduler's cluster."
    )
    troubles: FailureRatesModel = Field(
        default_factory=FailureRatesModel, description="How much goes wrong by chance."
    )
    events: tuple[PlannedFailureModel, ...] = Field(default=(), description="What goes wrong on order.")

    def problems(self) -> Iterable[Problem]:
        for index, blow in enumerate(self.events):
            if self.duration < blow.at:
                yield Problem(("events", index, "at"), "It comes after the end.", 'Make "duration" longer.')

    def scenes(self, folder: Path, env: Mapping[str, str]) -> dict[str, Scenario]:
        """By the name of their configuration."""
        return {name: self._scenario(folder / name, env) for name in (self.config, self.against) if name}

    def _scenario(self, path: Path, env: Mapping[str, str]) -> Scenario:
        file = load(path, ConfigFile, env)
        specs = pool_specs(file)
        return Scenario(
            specs=specs,
            policies=policies_of(specs, path.parent, env),
            troubles=self.troubles.value(),
            span=self.duration,
            calm=self.calm,
            boot=self.boot,
            leaves_within=self.work_leaves_within,
            joins_within=self.nodes_join_within,
            price=self.price,
            blows=tuple(PlannedFailure(one.at, one.ill, one.nodes, one.rack) for one in self.events),
            rhythm=LoopIntervals(),
        )
