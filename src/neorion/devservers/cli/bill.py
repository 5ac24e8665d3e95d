"""What each user's servers have cost: the report for who pays for the cluster."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Final

from msgspec import Struct

from neorion.devservers.cli.records import CostRecord
from neorion.devservers.cli.views import together
from neorion.devservers.client import Fleet
from neorion.devservers.model.objects import DevServer
from neorion.devservers.model.users import user_of
from neorion.keel.base import Invalid
from neorion.keel.cli import Format
from neorion.keel.cli.kit import Column, Output, Table


class UserCostRecord(Struct, frozen=True):
    """What the servers of one user have cost up to now, and what they cost now."""

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


def bills(servers: Iterable[DevServer], now: datetime) -> list[UserCostRecord]:
    """One for each user and currency, the dearest first. Whose a server is, its namespace says; anybody can write an owner."""
    grouped: dict[tuple[str, str], list[DevServer]] = {}
    for server in servers:
        grouped.setdefault((CostRecord.of(server, now).currency, server.meta.namespace), []).append(server)
    found = [_bill(*whose, mine, now) for whose, mine in grouped.items()]
    return sorted(found, key=lambda one: (one.currency, -Decimal(one.amount), one.namespace))


def _bill(currency: str, namespace: str, servers: list[DevServer], now: datetime) -> UserCostRecord:
    costs = [CostRecord.of(one, now) for one in servers]
    return UserCostRecord(
        user=user_of(namespace),
        namespace=namespace,
        servers=len(servers),
        running=sum(one.status.running_since is not None for one in servers),
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
            hint=f"devctl cost {name}, or devctl cost --by-user.",
        )


async def by_user(fleet: Fleet, out: Output) -> None:
    records = bills(await fleet.everybodys(), fleet.now())
    out.show(records, USER_COSTS)
    if len(records) > 1 and out.shared.output in {Format.TABLE, Format.WIDE}:
        out.say(f"Together: {together(records)}")
