"""Pools as the file describes them, in the older form (a list, `scaling`) and in the newer (a map, flat keys)."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Final, Literal

from pydantic import Field

from neorion.keel.base import did_you_mean
from neorion.keel.config import DurationField, Model, NameField, Problem
from neorion.navarch.adapters.config_file.autoscalers import AnyAutoscaler, WindowModel, one_name
from neorion.navarch.model.setup_template import VARIABLES, variables_in

Count = Annotated[int, Field(ge=0, le=100_000)]
Percent = Annotated[str, Field(pattern=r"^(100|[1-9]?[0-9])(\.[0-9]+)?%$")]
# "10%" or a count.
Share = Percent | Count
# No cloud has more regions, and every region is looked at together with every zone.
PLACES_MAX: Final = 64
Several = Annotated[tuple[str, ...], Field(max_length=PLACES_MAX)]
RemedyName = Literal["restart_workload", "reset_gpu", "reboot", "replace", "rma"]


class BudgetModel(Model):
    """A limit on nodes that are out of service."""

    max_unavailable: Share = Field(description="So many nodes at once, or a share of the pool as in 10%.")
    per: DurationField | None = Field(
        default=None, description="Counts what begins within this time instead."
    )
    reasons: tuple[str, ...] = Field(default=(), description="Only for these, as in xid 79.")
    zones: tuple[str, ...] = Field(default=(), description="Only in these zones.")
    each_zone: bool = Field(default=False, description="Counts every zone for itself.")
    windows: tuple[WindowModel, ...] = Field(default=(), description="Only at these times.")


class LadderModel(Model):
    """Attempts and waits of remediation."""

    tries: int | None = Field(
        default=None, ge=1, le=100, description="Times that a treatment is tried before a harder one."
    )
    pause: DurationField | None = Field(
        default=None, description="How long a treatment has to show that it helped."
    )
    max_treatments: int | None = Field(
        default=None, ge=1, le=100, description="In a week; then a node is replaced."
    )
    lemon_nodes: int | None = Field(
        default=None,
        ge=1,
        le=100,
        description="A host that cost so many nodes in a month is not accepted again.",
    )


class CommonCauseModel(Model):
    """When many nodes fail alike, everything waits for a while."""

    share: Percent | None = Field(default=None, description="Of the pool, as in 20%.")
    at_least: int | None = Field(default=None, ge=2, description="And at least so many nodes.")
    within: DurationField | None = Field(default=None, description="How close together they fail.")
    wait: DurationField | None = Field(default=None, description="How long after the last of them.")


class HealthModel(Model):
    """Handling of unhealthy nodes."""

    unhealthy_threshold: int | None = Field(
        default=None, ge=1, description="So many sightings make a node unhealthy."
    )
    unhealthy_after: int | None = Field(
        default=None, ge=1, description="The newer name of unhealthy_threshold."
    )
    auto_replace: bool = Field(default=True, description="Unhealthy nodes are replaced without asking.")
    policy: str = Field(default="", description="A file of rules for this pool.")
    approval: tuple[RemedyName, ...] = Field(default=(), description="What waits for a person.")
    budgets: tuple[BudgetModel, ...] | None = Field(
        default=None, description="How much may be out of service."
    )
    ladder: LadderModel = Field(default_factory=LadderModel, description="How patient treatment is.")
    common_cause: CommonCauseModel = Field(
        default_factory=CommonCauseModel, description="When many nodes that fail alike are waited for."
    )
    verify_for: DurationField | None = Field(
        default=None, description="How long a new node must be well before it serves."
    )
    boot_timeout: DurationField | None = Field(
        default=None, description="How long a machine may take to register."
    )
    drain_timeout: DurationField | None = Field(default=None, description="How long work may take to leave.")

    def problems(self) -> Iterable[Problem]:
        return one_name(self, "unhealthy_threshold", "unhealthy_after")


class ScalingModel(Model):
    """The size of a pool, in the older form."""

    min_nodes: Count = Field(default=0, description="At least so many nodes.")
    max_nodes: Annotated[int, Field(ge=1, le=100_000)] = Field(description="At most so many nodes.")
    cooldown_period: DurationField | None = Field(default=None, description="The pause between two changes.")
    autoscaler: AnyAutoscaler | None = Field(
        default=None, description="What decides the size; without it, people do."
    )


class PoolProvider(Model):
    """One of several clouds of a pool."""

    name: str = Field(description="Its name among the providers.")
    priority: int = Field(default=100, ge=0, description="The lowest is asked first.")
    weight: int = Field(default=1, ge=1, le=100, description="Its share in turns.")
    regions: Several = Field(default=(), description="Regions to ask, in this order.")
    zones: Several = Field(default=(), description="Zones to spread over.")
    instance_type: str = Field(default="", description="Its name of the machine, if it is another.")
    spot: bool = Field(default=False, description="Machines that may be taken back.")
    reservation: str = Field(default="", description="A reservation to use.")


class PoolModel(Model):
    """Nodes of one shape."""

    name: NameField | None = Field(default=None, description="Its name; in a map, the key is.")
    provider: str = Field(default="", description="The cloud, if there is one.")
    providers: tuple[PoolProvider, ...] = Field(
        default=(), max_length=PLACES_MAX, description="The clouds, if there are several."
    )
    strategy: Literal["priority", "round-robin", "availability", "cost"] = Field(
        default="priority", description="Which cloud is asked first."
    )
    instance_type: str = Field(default="", description="The cloud's name of the machine.")
    region: str = Field(default="", description="Where.")
    zones: Several = Field(default=(), description="Zones to spread over.")
    scaling: ScalingModel | None = Field(default=None, description="Its size.")
    min_nodes: Count | None = Field(default=None, description="At least so many nodes.")
    max_nodes: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="At most so many nodes."
    )
    cooldown: DurationField | None = Field(default=None, description="The pause between two changes.")
    autoscaling: AnyAutoscaler | None = Field(default=None, description="What decides the size.")
    spares: Count = Field(default=0, description="Verified nodes that wait to take a place.")
    surge: Share | None = Field(default=None, description="Nodes beyond max_nodes while others are replaced.")
    stabilization: DurationField | None = Field(
        default=None, description="How long a smaller size must have been enough."
    )
    max_step_up: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="At most so many nodes more at once."
    )
    max_step_down: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="At most so many fewer at once."
    )
    max_price: float | None = Field(default=None, gt=0, description="Dollars an hour for one machine.")
    max_spend: float | None = Field(default=None, gt=0, description="Dollars an hour for the pool.")
    max_purchases_per_hour: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="So many machines an hour."
    )
    spot: bool = Field(default=False, description="Machines that may be taken back.")
    health: HealthModel = Field(default_factory=HealthModel, description="What is done about sick nodes.")
    labels: dict[str, str] = Field(default_factory=dict, description="Labels of its nodes.")
    image: str = Field(default="", description="What its machines boot.")
    ssh_keys: tuple[str, ...] = Field(default=(), description="Keys that its machines know.")
    ssh_user: str = Field(default="", description="Who installs the agent.")
    ssh_private_key_path: str = Field(default="", description="With which key.")
    ssh_port: Annotated[int, Field(ge=1, le=65_535)] = Field(default=22, description="Where SSH answers.")
    ssh_host_keys: Literal["given", "first-contact"] = Field(
        default="given", description="Whether a machine must show the key it was given, or any at first."
    )
    setup_commands: tuple[str, ...] = Field(default=(), description="What installs the agent.")
    adopt: bool = Field(default=False, description="Machines that navarch did not buy may join.")

    def problems(self) -> Iterable[Problem]:
        yield from self._size_problems()
        if bool(self.provider) == bool(self.providers):
            yield Problem((), 'A pool needs "provider", or "providers" where there are several.')
        if not self.instance_type and not all(one.instance_type for one in self.providers):
            yield Problem((), 'A pool needs "instance_type".')
        for index, command in enumerate(self.setup_commands):
            for name in variables_in(command):
                if name not in VARIABLES:
                    yield Problem(
                        ("setup_commands", index),
                        f'There is no variable "{name}".',
                        did_you_mean(name, VARIABLES),
                    )

    def _size_problems(self) -> Iterator[Problem]:
        flat = [
            key
            for key in ("min_nodes", "max_nodes", "cooldown", "autoscaling")
            if getattr(self, key) is not None
        ]
        if self.scaling is not None and flat:
            yield Problem(
                (flat[0],), f'"{flat[0]}" stands beside "scaling", which says the same.', "Use one form."
            )
        elif self.scaling is None and self.max_nodes is None:
            yield Problem((), 'A pool needs "max_nodes".', 'Flat, or below "scaling".')
        if self.least > self.most:
            where = ("scaling", "min_nodes") if self.scaling else ("min_nodes",)
            yield Problem(where, f'"min_nodes" is {self.least}, more than the {self.most} of "max_nodes".')

    @property
    def least(self) -> int:
        return self.scaling.min_nodes if self.scaling else self.min_nodes or 0

    @property
    def most(self) -> int:
        return self.scaling.max_nodes if self.scaling else self.max_nodes or self.least or 1


class Defaults(Model):
    """Defaults of every pool, in the newer form of the file."""

    health: HealthModel | None = Field(default=None, description="What is done about sick nodes.")
    ssh_keys: tuple[str, ...] = Field(default=(), description="Keys that machines know.")
    ssh_user: str = Field(default="ubuntu", description="Who installs the agent.")
    ssh_private_key_path: str = Field(default="", description="With which key.")
