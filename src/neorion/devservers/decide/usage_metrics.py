"""Cost and usage of development servers as metrics, one series for each user and one for all of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from neorion.devservers.decide.cost import accrued, rate
from neorion.devservers.model.kube_types import DevServerObject
from neorion.devservers.model.tenancy import user_of


class Unit(StrEnum):
    """The units of CloudWatch that fit. It knows no currency."""

    COUNT = "Count"
    NONE = "None"
    SECONDS = "Seconds"


@dataclass(frozen=True, slots=True)
class Metric:
    """One value of one series."""

    name: str
    value: float
    unit: Unit
    dimensions: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class _Sum:
    """Servers of one user, or of all, in one currency."""

    servers: int = 0
    running: int = 0
    seconds: int = 0
    per_hour: Decimal = Decimal(0)
    amount: Decimal = Decimal(0)

    def add(self, server: DevServerObject, now: datetime) -> None:
        self.servers += 1
        if server.status.cost is None:
            return
        cost = accrued(server.status.cost, now)
        self.running += cost.running
        self.seconds += cost.running_seconds
        self.per_hour += Decimal(rate(cost))
        self.amount += Decimal(cost.amount)

    def metrics(self, dimensions: tuple[tuple[str, str], ...]) -> tuple[Metric, ...]:
        return (
            Metric("Servers", self.servers, Unit.COUNT, dimensions),
            Metric("RunningServers", self.running, Unit.COUNT, dimensions),
            Metric("RunningTime", self.seconds, Unit.SECONDS, dimensions),
            Metric("CostPerHour", float(self.per_hour), Unit.NONE, dimensions),
            Metric("CostSoFar", float(self.amount), Unit.NONE, dimensions),
        )


def usage_metrics(servers: Iterable[DevServerObject], now: datetime) -> tuple[Metric, ...]:
    """The user is the namespace's: an owner in the spec can be written by anyone. Amounts of two currencies are never added."""
    sums: dict[tuple[tuple[str, str], ...], _Sum] = {}
    for server in servers:
        cost = server.status.cost
        currency = ("Currency", cost.currency if cost else "USD")
        user = ("User", user_of(server.meta.namespace) or server.meta.namespace)
        for dimensions in ((currency,), (currency, user)):
            sums.setdefault(dimensions, _Sum()).add(server, now)
    return tuple(metric for dimensions in sorted(sums) for metric in sums[dimensions].metrics(dimensions))
