"""What a server has cost. Written down only when it starts, stops or its price changes; whoever reads adds the time since."""

from datetime import datetime
from decimal import Decimal

from msgspec.structs import replace

from neorion.devservers.model import Cost, Price

_HOUR = Decimal(3600)


def opened(price: Price, since: datetime) -> Cost:
    return _at(Cost(as_of=since), price)


def accrued(cost: Cost, now: datetime, *, running: bool) -> Cost:
    """The account up to `now`, if the server was all the time since the last entry what `running` says."""
    seconds = max(0, int((now - cost.as_of).total_seconds()))
    rate = Decimal(cost.per_hour if running else cost.stopped_per_hour)
    return replace(
        cost,
        as_of=now,
        running_seconds=cost.running_seconds + (seconds if running else 0),
        stopped_seconds=cost.stopped_seconds + (0 if running else seconds),
        amount=_text(Decimal(cost.amount) + rate * seconds / _HOUR),
    )


def carried(cost: Cost, price: Price | None, now: datetime, *, ran: bool, turns: bool) -> Cost:
    """The account after a look. It gets an entry when the server `turns` from running to rest or back, and when its price is another.

    Time so far counts at the old rates, time from now on at the new ones. A price that nobody can tell is the old one.
    """
    if not turns and (price is None or _at(cost, price) == cost):
        return cost
    brought = accrued(cost, now, running=ran)
    return brought if price is None else _at(brought, price)


def _at(cost: Cost, price: Price) -> Cost:
    return replace(cost, currency=price.currency, per_hour=price.per_hour, stopped_per_hour=price.stopped)


def _text(amount: Decimal) -> str:
    """Exact enough that a thousand entries of a second each do not lose a cent."""
    return format(amount.quantize(Decimal("0.000001")).normalize(), "f")
