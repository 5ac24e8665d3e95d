"""Servers, flavors, costs and events as records to show: one table for each kind, whatever the format."""

from datetime import datetime
from decimal import Decimal
from typing import Final

from msgspec import Struct

from neorion.devservers.cli.words import TONES, age, ago, moment, until
from neorion.devservers.client import STOPS, obstacle, when
from neorion.devservers.decide import accrued
from neorion.devservers.model.objects import DevServer, DevServerFlavor
from neorion.keel.base import Instant
from neorion.keel.cli.kit import Column, Table
from neorion.keel.kube.core import Event

_GPU: Final = ("nvidia.com/", "amd.com/", "gpu.intel.com/")


class ServerRecord(Struct, frozen=True):
    """A server. `message` says what is in its way."""

    name: str
    namespace: str
    owner: str
    flavor: str
    image: str
    phase: str
    ready: bool
    message: str
    home: str
    stops: Instant | None
    stops_because: str
    last_used: Instant | None
    used_by: str
    created: Instant | None

    @classmethod
    def of(cls, server: DevServer) -> "ServerRecord":
        spec, status = server.spec, server.status
        return cls(
            name=server.meta.name,
            namespace=server.meta.namespace,
            owner=spec.owner or "",
            flavor=spec.flavor,
            image=spec.image or "",
            phase=phase(server),
            ready=status.ready,
            message=obstacle(server),
            home=spec.persistent_home_size,
            stops=moment(status.deadline.time) if status.deadline else None,
            stops_because=STOPS[status.deadline.reason] if status.deadline else "",
            last_used=moment(status.activity.last_time) if status.activity else None,
            used_by=status.activity.source if status.activity else "",
            created=moment(server.meta.created),
        )


def phase(server: DevServer) -> str:
    if server.meta.deleted is not None:
        return "Terminating"
    return server.status.phase.value if server.status.phase else "New"


def servers_table(now: Instant) -> Table[ServerRecord]:
    return Table(
        (
            Column("NAME", lambda one: one.name),
            Column("FLAVOR", lambda one: one.flavor, priority=2),
            Column("STATUS", lambda one: one.phase, tone=lambda one: TONES.get(one.phase)),
            Column("READY", lambda one: one.ready, priority=4),
            Column("STOPS", lambda one: until(now, one.stops), priority=1),
            Column("AGE", lambda one: age(now, one.created), priority=3),
            Column("OWNER", lambda one: one.owner, wide=True),
            Column("IMAGE", lambda one: one.image, wide=True),
            Column("HOME", lambda one: one.home, wide=True),
            Column("LAST USED", lambda one: ago(now, one.last_used), wide=True),
            Column("NAMESPACE", lambda one: one.namespace, wide=True),
            Column("IN THE WAY", lambda one: one.message, priority=5, wrap=True),
        ),
        name=lambda one: one.name,
        empty="No servers yet. Make one: devctl create NAME",
    )


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
    running: int
    deprecated: str
    description: str

    @classmethod
    def of(cls, flavor: DevServerFlavor) -> "FlavorRecord":
        spec = flavor.spec
        most = {**spec.resources.requests, **spec.resources.limits}
        devices = [f"{amount} {name}" for name, amount in most.items() if name.startswith(_GPU)]
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
            running=flavor.status.running,
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
        Column("RUNNING", lambda one: one.running, wide=True, right=True),
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


class CostRecord(Struct, frozen=True):
    """What a server has cost up to now, and what it costs now."""

    name: str
    owner: str
    flavor: str
    phase: str
    running_hours: str
    stopped_hours: str
    per_hour: str
    amount: str
    currency: str

    @classmethod
    def of(cls, server: DevServer, now: datetime) -> "CostRecord":
        status = server.status
        runs = status.running_since is not None
        cost = accrued(status.cost, now, running=runs) if status.cost else None
        rate = (cost.per_hour if runs else cost.stopped_per_hour) if cost else "0"
        return cls(
            name=server.meta.name,
            owner=server.spec.owner or "",
            flavor=server.spec.flavor,
            phase=phase(server),
            running_hours=_hours(cost.running_seconds if cost else 0),
            stopped_hours=_hours(cost.stopped_seconds if cost else 0),
            per_hour=rate,
            amount=f"{Decimal(cost.amount if cost else '0'):.2f}",
            currency=cost.currency if cost else "USD",
        )


COSTS: Final[Table[CostRecord]] = Table(
    (
        Column("NAME", lambda one: one.name),
        Column("OWNER", lambda one: one.owner, wide=True),
        Column("FLAVOR", lambda one: one.flavor, priority=2),
        Column("STATUS", lambda one: one.phase, priority=3, tone=lambda one: TONES.get(one.phase)),
        Column("HOURS RUN", lambda one: one.running_hours, right=True, priority=1),
        Column("HOURS STOPPED", lambda one: one.stopped_hours, right=True, priority=4),
        Column("PER HOUR NOW", lambda one: one.per_hour, right=True, priority=1),
        Column("SO FAR", lambda one: f"{one.amount} {one.currency}", right=True),
    ),
    name=lambda one: one.name,
    empty="No servers, no costs.",
)


class EventRecord(Struct, frozen=True):
    """Something that was told of a server or a part of it."""

    time: Instant | None
    type: str
    reason: str
    about: str
    count: int
    message: str

    @classmethod
    def of(cls, event: Event) -> "EventRecord":
        return cls(
            time=moment(when(event)),
            type=event.type,
            reason=event.reason,
            about=f"{event.regarding.kind}/{event.regarding.name}",
            count=event.series.count if event.series else 1,
            message=event.note,
        )


def events_table(now: Instant) -> Table[EventRecord]:
    return Table(
        (
            Column("WHEN", lambda one: ago(now, one.time)),
            Column("TYPE", lambda one: one.type, priority=1),
            Column("REASON", lambda one: one.reason),
            Column("ABOUT", lambda one: one.about, priority=2),
            Column("TIMES", lambda one: one.count, wide=True, right=True),
            Column("MESSAGE", lambda one: one.message, wrap=True),
        ),
        name=lambda one: one.reason,
        empty="Nothing was told of it lately; the cluster forgets events after a while.",
    )


def _hours(seconds: int) -> str:
    return f"{seconds / 3600:.1f}"
