"""Commands that inspect one server."""

from datetime import datetime

from msgspec import Struct

from neorion.devservers.cli.commands.cost_impl import CostRecord
from neorion.devservers.cli.humanize import TONES, moment
from neorion.devservers.cli.options import (
    ClusterSelector,
)
from neorion.devservers.cli.session import run_with_api
from neorion.devservers.cli.tables import ServerRecord
from neorion.devservers.client import DevServerApi, Diagnosis, event_time, steps, stop_conditions
from neorion.devservers.client.aws_facts import read_aws_facts
from neorion.devservers.decide.aws_installation import check_aws
from neorion.devservers.model.kube_types import DevServerFlavor, DevServerObject
from neorion.keel.base import Finding, Instant, Invalid, Severity
from neorion.keel.cli.kit import Column, Output, Table, show_findings
from neorion.keel.cli.kit.humanize import ago
from neorion.keel.kube.core import Event


class StepRecord(Struct, frozen=True):
    """One step on a server's way, as far as it is known."""

    name: str
    done: bool
    obstacle: str


class RankRecord(Struct, frozen=True):
    """One machine of a distributed server."""

    rank: int
    pod: str
    node: str
    ready: bool

    @property
    def sentence(self) -> str:
        return (
            f"{self.rank}: {'ready' if self.ready else 'not ready'}{f', on {self.node}' if self.node else ''}"
        )


class ServerDescription(Struct, frozen=True):
    """All there is to know of a server."""

    server: ServerRecord
    sentence: str
    hint: str
    stops: tuple[str, ...]
    steps: tuple[StepRecord, ...]
    cost: CostRecord
    running_since: Instant | None
    pods: tuple[str, ...]
    shared_volume: str
    volumes: tuple[str, ...]
    urls: dict[str, str]
    ssh: str
    queue: str
    quota_holders: tuple[str, ...]
    home_kept: str
    ranks: tuple[RankRecord, ...]

    @classmethod
    def of(
        cls, server: DevServerObject, flavor: DevServerFlavor | None, found: Diagnosis, now: datetime
    ) -> "ServerDescription":
        spec, status = server.spec, server.status
        return cls(
            server=ServerRecord.of(server),
            sentence=found.sentence,
            hint=found.hint,
            stops=stop_conditions(server, flavor, now),
            steps=tuple(StepRecord(one.name, one.done, one.obstacle) for one in steps(server)),
            cost=CostRecord.of(server, now),
            running_since=moment(status.running_since),
            pods=status.pod_names,
            shared_volume=spec.shared_volume_claim_name or "",
            volumes=tuple(f"{one.claim_name} at {one.mount_path}" for one in spec.volumes),
            urls=dict(status.urls),
            ssh=status.ssh_endpoint or "",
            queue=(status.queue.name if status.queue else "") or (spec.queue.name if spec.queue else ""),
            quota_holders=status.queue.holders if status.queue else (),
            home_kept=spec.home.retention,
            ranks=tuple(
                RankRecord(rank, one.name, one.node or "", one.ready) for rank, one in enumerate(status.ranks)
            ),
        )


def description_table(now: Instant) -> Table[ServerDescription]:
    return Table(
        (
            Column("Name", lambda one: one.server.name),
            Column("Namespace", lambda one: one.server.namespace),
            Column("Owner", lambda one: one.server.owner),
            Column("Status", lambda one: one.server.phase, tone=lambda one: TONES.get(one.server.phase)),
            Column("Why", lambda one: one.sentence),
            Column("What helps", lambda one: one.hint),
            Column("Stops", lambda one: " ".join(one.stops)),
            Column("Steps done", lambda one: [step.name for step in one.steps if step.done]),
            Column("Flavor", lambda one: one.server.flavor),
            Column("Image", lambda one: one.server.image or "the flavor's own"),
            Column("Running since", lambda one: ago(now, one.running_since)),
            Column("Last used", lambda one: _used(one.server, now)),
            Column(
                "Home", lambda one: f"{one.server.home}, kept {one.home_kept} after the server is deleted"
            ),
            Column("Shared volume", lambda one: one.shared_volume),
            Column("Volumes", lambda one: one.volumes),
            Column("Ports", lambda one: [f"{name}: {url}" for name, url in one.urls.items()]),
            Column("SSH", lambda one: one.ssh),
            Column("Queue", lambda one: one.queue),
            Column("Quota held by", lambda one: one.quota_holders),
            Column("Machine", lambda one: one.pods),
            Column("Ranks", lambda one: [rank.sentence for rank in one.ranks]),
            Column("Cost so far", lambda one: f"{one.cost.amount} {one.cost.currency}"),
            Column("Cost per hour", lambda one: f"{one.cost.per_hour} {one.cost.currency}"),
            Column("Created", lambda one: ago(now, one.server.created)),
        ),
        name=lambda one: one.server.name,
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
            time=moment(event_time(event)),
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


async def describe(fleet: DevServerApi, out: Output, name: str) -> None:
    server = await fleet.server(name)
    flavor = await fleet.flavor_of(server)
    found = await fleet.diagnose(server)
    out.show_one(
        ServerDescription.of(server, flavor, found, fleet.now()), description_table(fleet.clock.now())
    )


async def doctor(fleet: DevServerApi, out: Output, names: tuple[str, ...]) -> int:
    servers = [await fleet.server(name) for name in names] if names else await fleet.servers()
    findings: list[Finding] = []
    for server in servers:
        found = await fleet.diagnose(server)
        rests = server.meta.deleted is None and not server.spec.running
        severity = Severity.INFO if found.well or rests else Severity.ERROR
        findings.append(
            Finding(severity, "devservers.diagnosis", server.meta.name, found.sentence, found.hint)
        )
    return show_findings(out, findings)


async def doctor_aws(fleet: DevServerApi, out: Output) -> int:
    return show_findings(out, check_aws(await read_aws_facts(fleet.client)))


async def events(fleet: DevServerApi, out: Output, name: str) -> None:
    found = await fleet.events(name)
    if not found:
        # Fails if there is no such server. A server without events is not an error.
        await fleet.server(name)
    out.show([EventRecord.of(one) for one in found], events_table(fleet.clock.now()))


def _used(server: ServerRecord, now: Instant) -> str:
    return f"{ago(now, server.last_used)}: {server.used_by}" if server.last_used else "not known"


def describe_command(out: Output, name: str, where: ClusterSelector) -> None:
    run_with_api(out, where, lambda fleet: describe(fleet, out, name))


def doctor_command(out: Output, names: tuple[str, ...], where: ClusterSelector, *, aws: bool) -> int:
    if aws and names:
        raise Invalid(
            "devservers.doctor_of_what",
            "--aws checks the whole installation, not one server.",
            hint=f"Run devctl doctor --aws, or devctl doctor {names[0]}.",
        )
    if aws:
        return run_with_api(out, where, lambda fleet: doctor_aws(fleet, out))
    return run_with_api(out, where, lambda fleet: doctor(fleet, out, names))


def events_command(out: Output, name: str, where: ClusterSelector) -> None:
    run_with_api(out, where, lambda fleet: events(fleet, out, name))
