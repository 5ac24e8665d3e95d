"""Costs of servers and of users."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Final, Protocol

from msgspec import Struct

from neorion.devservers.cli.humanize import TONES
from neorion.devservers.cli.options import (
    ClusterSelector,
)
from neorion.devservers.cli.session import run_with_api
from neorion.devservers.cli.tables import phase
from neorion.devservers.client import DevServerApi
from neorion.devservers.decide import accrued, rate
from neorion.devservers.model.kube_types import DevServerObject
from neorion.devservers.model.tenancy import user_of
from neorion.keel.base import Invalid
from neorion.keel.cli import Format
from neorion.keel.cli.kit import Column, Output, Table


class CostRecord(Struct, frozen=True):
    """Cost of a server up to now, and its current rate."""

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
    def of(cls, server: DevServerObject, now: datetime) -> "CostRecord":
        cost = accrued(server.status.cost, now) if server.status.cost else None
        return cls(
            name=server.meta.name,
            owner=server.spec.owner or "",
            flavor=server.spec.flavor,
            phase=phase(server),
            running_hours=_hours(cost.running_seconds if cost else 0),
            stopped_hours=_hours(cost.stopped_seconds if cost else 0),
            per_hour=rate(cost) if cost else "0",
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


async def cost(fleet: DevServerApi, out: Output, name: str) -> None:
    now = fleet.now()
    if name:
        out.show_one(CostRecord.of(await fleet.server(name), now), COSTS)
        return
    records = [CostRecord.of(one, now) for one in await fleet.servers()]
    out.show(records, COSTS)
    if len(records) > 1 and out.shared.output in {Format.TABLE, Format.WIDE}:
        out.say(f"Together: {together(records)}")


class UserCostRecord(Struct, frozen=True):
    """Cost of one user's servers up to now, and their current rate."""

    user: str
    namespace: str
    servers: int
    running: int
    running_hours: str
    per_hour: str
    amount: str
    currency: str


USER_COSTS: Final[Table[UserCostRecord]] = Table(
    (
        Column("USER", lambda one: one.user or one.namespace),
        Column("NAMESPACE", lambda one: one.namespace, wide=True),
        Column("SERVERS", lambda one: one.servers, right=True, priority=2),
        Column("RUNNING", lambda one: one.running, right=True, priority=2),
        Column("HOURS RUN", lambda one: one.running_hours, right=True, priority=3),
        Column("PER HOUR NOW", lambda one: one.per_hour, right=True, priority=1),
        Column("SO FAR", lambda one: f"{one.amount} {one.currency}", right=True),
    ),
    name=lambda one: one.user or one.namespace,
    empty="No servers, no costs.",
)


def bills(servers: Iterable[DevServerObject], now: datetime) -> list[UserCostRecord]:
    """One record for each user and currency, the dearest first. The namespace gives the user, because owners can be forged."""
    grouped: dict[tuple[str, str], list[DevServerObject]] = {}
    for server in servers:
        grouped.setdefault((CostRecord.of(server, now).currency, server.meta.namespace), []).append(server)
    found = [_bill(*whose, mine, now) for whose, mine in grouped.items()]
    return sorted(found, key=lambda one: (one.currency, -Decimal(one.amount), one.namespace))


def _bill(currency: str, namespace: str, servers: list[DevServerObject], now: datetime) -> UserCostRecord:
    costs = [CostRecord.of(one, now) for one in servers]
    return UserCostRecord(
        user=user_of(namespace),
        namespace=namespace,
        servers=len(servers),
        running=sum(one.status.cost is not None and one.status.cost.running for one in servers),
        running_hours=str(sum(Decimal(one.running_hours) for one in costs)),
        per_hour=str(sum(Decimal(one.per_hour) for one in costs)),
        amount=str(sum(Decimal(one.amount) for one in costs)),
        currency=currency,
    )


def check_alone(name: str) -> None:
    if name:
        raise Invalid(
            "devservers.cost_of_whom",
            "One server has one user.",
            hint=f"Run: devctl cost {name}, or devctl cost --by-user.",
        )


async def cost_by_user(fleet: DevServerApi, out: Output) -> None:
    records = bills(await fleet.list_all(), fleet.now())
    out.show(records, USER_COSTS)
    if len(records) > 1 and out.shared.output in {Format.TABLE, Format.WIDE}:
        out.say(f"Together: {together(records)}")


class Money(Protocol):
    """An amount of money."""

    @property
    def amount(self) -> str: ...

    @property
    def currency(self) -> str: ...


def together(records: Iterable[Money]) -> str:
    sums: dict[str, Decimal] = {}
    for one in records:
        sums[one.currency] = sums.get(one.currency, Decimal(0)) + Decimal(one.amount)
    return ", ".join(f"{amount:.2f} {currency}" for currency, amount in sorted(sums.items()))


def _hours(seconds: int) -> str:
    return f"{seconds / 3600:.1f}"


def cost_command(out: Output, name: str, where: ClusterSelector, *, by_user: bool) -> None:
    if by_user:
        check_alone(name)
        run_with_api(out, where, lambda fleet: cost_by_user(fleet, out))
    else:
        run_with_api(out, where, lambda fleet: cost(fleet, out, name))
