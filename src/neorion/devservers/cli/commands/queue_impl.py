"""The list of servers that wait for quota."""

from msgspec import Struct

from neorion.devservers.cli.humanize import moment
from neorion.devservers.cli.options import ClusterSelector
from neorion.devservers.cli.session import run_with_api
from neorion.devservers.client import DevServerApi
from neorion.devservers.model import ConditionType, Phase
from neorion.devservers.model.kube_types import DevServerObject
from neorion.keel.base import Instant
from neorion.keel.cli.kit import Column, Output, Table
from neorion.keel.cli.kit.humanize import ago


class QueuedRecord(Struct, frozen=True):
    """A server that waits for quota. `since` is when it began to wait."""

    name: str
    namespace: str
    owner: str
    flavor: str
    machines: int
    queue: str
    cluster_queue: str
    place: int | None
    waiting: int | None
    since: Instant | None
    reason: str
    message: str

    @classmethod
    def of(cls, server: DevServerObject) -> "QueuedRecord":
        spec, status = server.spec, server.status
        told = next((one for one in status.conditions if one.type is ConditionType.QUOTA), None)
        return cls(
            name=server.meta.name,
            namespace=server.meta.namespace,
            owner=spec.owner or "",
            flavor=spec.flavor,
            machines=spec.distributed.nodes if spec.distributed is not None else 1,
            queue=status.queue.name if status.queue else "",
            cluster_queue=(status.queue.cluster_queue if status.queue else None) or "",
            place=status.queue.place if status.queue else None,
            waiting=status.queue.waiting if status.queue else None,
            since=moment(told.last_transition_time if told else server.meta.created),
            reason=told.reason if told else "",
            message=told.message if told else "",
        )


def queue_table(now: Instant) -> Table[QueuedRecord]:
    return Table(
        (
            Column("NAME", lambda one: one.name),
            Column("PLACE", lambda one: f"{one.place} of {one.waiting}" if one.place else "", right=True),
            Column("QUEUE", lambda one: one.queue, priority=2),
            Column("FLAVOR", lambda one: one.flavor, priority=3),
            Column("MACHINES", lambda one: str(one.machines), priority=4, right=True),
            Column("SINCE", lambda one: ago(now, one.since), priority=1),
            Column("NAMESPACE", lambda one: one.namespace, wide=True),
            Column("OWNER", lambda one: one.owner, wide=True),
            Column("CLUSTER QUEUE", lambda one: one.cluster_queue, wide=True),
            Column("REASON", lambda one: one.message, priority=5, wrap=True),
        ),
        name=lambda one: one.name,
        empty="No server waits for quota.",
    )


async def queue(fleet: DevServerApi, out: Output, *, everywhere: bool) -> None:
    servers = await (fleet.list_all() if everywhere else fleet.servers())
    waiting = [QueuedRecord.of(one) for one in servers if one.status.phase is Phase.QUEUED]
    waiting.sort(key=lambda one: (one.cluster_queue, one.place or 0, one.namespace, one.name))
    out.show(waiting, queue_table(fleet.clock.now()))


def queue_command(out: Output, where: ClusterSelector, *, everywhere: bool) -> None:
    run_with_api(out, where, lambda fleet: queue(fleet, out, everywhere=everywhere))
