"""Quota of teams: what dev servers and jobs use together."""

from collections.abc import Mapping

from msgspec import Struct

from neorion.devservers.cli.humanize import moment
from neorion.devservers.cli.options import ClusterSelector
from neorion.devservers.cli.session import run_with_api
from neorion.devservers.client import DevServerApi
from neorion.devservers.client.quota import read_quota
from neorion.devservers.decide.team_usage import (
    CPU_HOUR,
    GPU_HOUR,
    Holder,
    HolderKind,
    TeamUsage,
    usage_of_teams,
)
from neorion.keel.base import Instant, NotFound, Quantity, did_you_mean
from neorion.keel.cli.kit import Column, Output, Table
from neorion.keel.cli.kit.humanize import ago


class AmountsRecord(Struct, frozen=True):
    """Amounts of one resource."""

    used: str
    quota: str
    borrowed: str


class TeamRecord(Struct, frozen=True):
    """Quota that one team uses. `unpriced` counts the holders that `per_hour` leaves out."""

    team: str
    cohort: str
    servers: int
    jobs: int
    others: int
    waiting: int
    resources: dict[str, AmountsRecord]
    per_hour: str
    unpriced: int

    @classmethod
    def of(cls, usage: TeamUsage) -> "TeamRecord":
        return cls(
            team=usage.team,
            cohort=usage.cohort,
            servers=usage.count(HolderKind.SERVER),
            jobs=usage.count(HolderKind.JOB),
            others=usage.count(HolderKind.OTHER),
            waiting=usage.waiting,
            resources={
                name: AmountsRecord(str(one.used), str(one.quota), str(one.borrowed))
                for name, one in usage.resources.items()
            },
            per_hour=f"{usage.per_hour:.2f}",
            unpriced=usage.unpriced,
        )


class HolderRecord(Struct, frozen=True):
    """One server or job that holds quota. `per_hour` is empty where no price is known."""

    kind: str
    name: str
    namespace: str
    machines: int
    used: dict[str, str]
    per_hour: str
    since: Instant | None

    @classmethod
    def of(cls, holder: Holder) -> "HolderRecord":
        return cls(
            kind=holder.kind.value,
            name=holder.name,
            namespace=holder.namespace,
            machines=holder.machines,
            used=_texts(holder.used),
            per_hour="" if holder.per_hour is None else f"{holder.per_hour:.2f}",
            since=moment(holder.since),
        )


def team_table() -> Table[TeamRecord]:
    return Table(
        (
            Column("TEAM", lambda one: one.team),
            Column("SERVERS", lambda one: one.servers, right=True, priority=2),
            Column("JOBS", lambda one: one.jobs + one.others, right=True, priority=2),
            Column("WAITING", lambda one: one.waiting, right=True, priority=1),
            Column("USED OF QUOTA", _shares),
            Column("PER HOUR NOW", lambda one: one.per_hour, right=True, priority=1),
            Column("COHORT", lambda one: one.cohort, wide=True),
        ),
        name=lambda one: one.team,
        empty="There are no ClusterQueues, and so no quota.",
    )


def holder_table(now: Instant) -> Table[HolderRecord]:
    return Table(
        (
            Column("KIND", lambda one: one.kind, priority=1),
            Column("NAME", lambda one: one.name),
            Column("NAMESPACE", lambda one: one.namespace),
            Column("MACHINES", lambda one: one.machines, right=True, priority=3),
            Column("USES", lambda one: ", ".join(f"{name} {amount}" for name, amount in one.used.items())),
            Column("PER HOUR NOW", lambda one: one.per_hour, right=True, priority=1),
            Column("SINCE", lambda one: ago(now, one.since), priority=2),
        ),
        name=lambda one: f"{one.namespace}/{one.name}",
        empty="Nothing holds quota of this team.",
    )


async def quota(fleet: DevServerApi, out: Output, team: str) -> None:
    usages = usage_of_teams(await read_quota(fleet.client))
    if team:
        found = next((one for one in usages if one.team == team), None)
        if found is None:
            raise NotFound(
                "devservers.no_team",
                f'There is no ClusterQueue "{team}".',
                hint=did_you_mean(team, [one.team for one in usages]) or "List them: devctl quota.",
            )
        out.show([HolderRecord.of(one) for one in found.holders], holder_table(fleet.clock.now()))
        unpriced = found.unpriced
    else:
        out.show([TeamRecord.of(one) for one in usages], team_table())
        unpriced = sum(one.unpriced for one in usages)
    if unpriced:
        marks = f"{GPU_HOUR} and {CPU_HOUR}"
        out.say(f"{unpriced} have no price: annotate their ResourceFlavor with {marks}.")


def _shares(record: TeamRecord) -> str:
    def share(name: str, one: AmountsRecord) -> str:
        borrowed = f" ({one.borrowed} borrowed)" if one.borrowed != "0" else ""
        return f"{name} {one.used} of {one.quota}{borrowed}"

    return ", ".join(share(name, one) for name, one in record.resources.items())


def _texts(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def quota_command(out: Output, team: str, where: ClusterSelector) -> None:
    run_with_api(out, where, lambda fleet: quota(fleet, out, team))
