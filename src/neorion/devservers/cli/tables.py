"""Servers as records to show, whatever the format."""

from msgspec import Struct

from neorion.devservers.cli.humanize import TONES, age, moment, until
from neorion.devservers.client import STOPS, obstacle
from neorion.devservers.model.kube_types import DevServerObject
from neorion.keel.base import Instant
from neorion.keel.cli.kit import Column, Table
from neorion.keel.cli.kit.humanize import ago


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
    ranks: str
    stops: Instant | None
    stops_because: str
    last_used: Instant | None
    used_by: str
    created: Instant | None

    @classmethod
    def of(cls, server: DevServerObject) -> "ServerRecord":
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
            ranks=_ranks(server),
            stops=moment(status.deadline.time) if status.deadline else None,
            stops_because=STOPS[status.deadline.reason] if status.deadline else "",
            last_used=moment(status.activity.last_time) if status.activity else None,
            used_by=status.activity.source if status.activity else "",
            created=moment(server.meta.created),
        )


def _ranks(server: DevServerObject) -> str:
    """Ready ranks of all, of a distributed server."""
    distributed = server.spec.distributed
    ready = sum(rank.ready for rank in server.status.ranks)
    return f"{ready}/{distributed.nodes}" if distributed is not None else ""


def phase(server: DevServerObject) -> str:
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
            Column("RANKS", lambda one: one.ranks, priority=4, right=True),
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
