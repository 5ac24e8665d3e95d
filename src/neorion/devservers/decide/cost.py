"""Cost of a server. Recorded only when it gets or loses a machine or changes price; readers add the time since then."""

from datetime import datetime
from decimal import Decimal

from msgspec.structs import replace

from neorion.devservers.model import Cost, Price

_HOUR = Decimal(3600)


def opened(price: Price, since: datetime) -> Cost:
    return _at(Cost(as_of=since), price)


def accrued(cost: Cost, now: datetime) -> Cost:
    """The account up to `now`."""
    seconds = max(0, int((now - cost.as_of).total_seconds()))
    return replace(
        cost,
        as_of=now,
        running_seconds=cost.running_seconds + (seconds if cost.running else 0),
        stopped_seconds=cost.stopped_seconds + (0 if cost.running else seconds),
        amount=_text(Decimal(cost.amount) + Decimal(rate(cost)) * seconds / _HOUR),
    )


def rate(cost: Cost) -> str:
    """Price of an hour at the current rate."""
    return cost.per_hour if cost.running else cost.stopped_per_hour


def carried(cost: Cost, price: Price | None, now: datetime, *, running: bool) -> Cost:
    """The cost record at this time. It changes when the server gets or loses a machine, and when its price changes.

    Time so far counts at the old rates, time from now on at the new ones. An unknown price counts as unchanged.
    """
    if running is cost.running and (price is None or _at(cost, price) == cost):
        return cost
    brought = replace(accrued(cost, now), running=running)
    return brought if price is None else _at(brought, price)


def times(price: Price, machines: int) -> Price:
    """Price of several machines."""
    running, stopped = Decimal(price.per_hour) * machines, Decimal(price.stopped) * machines
    return replace(price, per_hour=format(running, "f"), stopped=format(stopped, "f"))


def _at(cost: Cost, price: Price) -> Cost:
    return replace(cost, currency=price.currency, per_hour=price.per_hour, stopped_per_hour=price.stopped)


def _text(amount: Decimal) -> str:
    """Exact enough that a thousand entries of a second each do not lose a cent."""
    return format(amount.quantize(Decimal("0.000001")).normalize(), "f")
