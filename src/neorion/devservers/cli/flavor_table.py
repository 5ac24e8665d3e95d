"""Flavors as records to show."""

from typing import Final

from msgspec import Struct

from neorion.devservers.model.flavor import is_gpu
from neorion.devservers.model.kube_types import DevServerFlavor
from neorion.keel.cli.kit import Column, Table


class FlavorRecord(Struct, frozen=True):
    """A kind of machine. `machine` is the cloud's name for it."""

    name: str
    default: bool
    cpu: str
    memory: str
    gpus: str
    machine: str
    cloud: str
    per_hour: str
    stopped_per_hour: str
    currency: str
    longest: str
    deprecated: str
    description: str

    @classmethod
    def of(cls, flavor: DevServerFlavor) -> "FlavorRecord":
        spec = flavor.spec
        most = {**spec.resources.requests, **spec.resources.limits}
        devices = [f"{amount} {name}" for name, amount in most.items() if is_gpu(name)]
        machines = [
            value for key, value in spec.node_selector.items() if key.rpartition("/")[2] == "instance-type"
        ]
        return cls(
            name=flavor.meta.name,
            default=spec.default,
            cpu=str(most.get("cpu", "")),
            memory=str(most.get("memory", "")),
            gpus=", ".join(devices),
            machine=next(iter(machines), ""),
            cloud=flavor.meta.labels.get("devservers.io/cloud", ""),
            per_hour=spec.price.per_hour if spec.price else "",
            stopped_per_hour=spec.price.stopped if spec.price else "",
            currency=spec.price.currency if spec.price else "",
            longest=(spec.limits.max_ttl if spec.limits else None) or "",
            deprecated=spec.deprecated.message if spec.deprecated else "",
            description=spec.description or "",
        )


FLAVORS: Final[Table[FlavorRecord]] = Table(
    (
        Column("NAME", lambda one: one.name),
        Column("DEFAULT", lambda one: one.default, priority=5),
        Column("CPU", lambda one: one.cpu, right=True),
        Column("MEMORY", lambda one: one.memory, right=True),
        Column("GPU", lambda one: one.gpus, priority=1),
        Column("MACHINE", lambda one: one.machine, priority=4),
        Column(
            "PER HOUR",
            lambda one: f"{one.per_hour} {one.currency}" if one.per_hour else "",
            priority=2,
            right=True,
        ),
        Column("AT MOST", lambda one: one.longest, priority=3),
        Column("STOPPED PER HOUR", lambda one: one.stopped_per_hour, wide=True, right=True),
        Column("CLOUD", lambda one: one.cloud, wide=True),
        Column(
            "ABOUT",
            lambda one: f"Goes away: {one.deprecated}" if one.deprecated else one.description,
            priority=6,
            wrap=True,
        ),
    ),
    name=lambda one: one.name,
    empty="This cluster has no such flavors.",
)
