"""Users with office hours over a month, and what their servers cost with and without stops by themselves.

Every stop is decided by the operator's own rules, at the moments at which it would look into a server.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec

from neorion.devservers.decide import (
    ActivityHistory,
    ActivitySource,
    Observed,
    ProbeReading,
    StopServer,
    accrued,
    decide,
    next_history,
    next_probe,
)
from neorion.devservers.model import DevServerFlavorSpec, DevServerSpec, Lifecycle, Price
from neorion.devservers.model.kube_types import DevServerFlavor
from neorion.devservers.testing import FLAVOR, SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.clock import Rng

_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
# Prices of an hour on AWS, and of a home of 100 GiB.
_MACHINES = (("m5.2xlarge", "0.384"), ("g4dn.xlarge", "0.526"), ("g5.4xlarge", "1.624"))
_HOME = "0.011"


@dataclass(frozen=True, slots=True)
class Use:
    """A time in which a user works, without a longer pause. At its end a job may go on alone."""

    begin: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Person:
    """One user: the machine, and the times of work."""

    flavor: DevServerFlavor
    uses: tuple[Use, ...]


@dataclass(slots=True)
class Account:
    """Hours and money of all servers."""

    begun: datetime
    ended: datetime
    used: timedelta = timedelta(0)
    running: timedelta = timedelta(0)
    starts: int = 0
    cost: Decimal = Decimal(0)
    cost_without: Decimal = Decimal(0)
    stopped_in_use: list[datetime] = field(default_factory=list[datetime])

    @property
    def saving(self) -> float:
        return float(1 - self.cost / self.cost_without)

    def report(self, users: int) -> str:
        whole = (self.ended - self.begun) * users

        def hours(span: timedelta) -> str:
            return f"{span / _HOUR:>9,.0f} h {span / whole:>6.1%}"

        lines = (
            f"{users} users, {(self.ended - self.begun).days} days, idle timeout 1 h",
            f"  in use                      {hours(self.used)}",
            f"  running, not in use         {hours(self.running - self.used)}",
            f"  stopped by itself           {hours(whole - self.running)}",
            f"  started again               {self.starts:>9,}",
            f"  cost, always running        {self.cost_without:>9,.0f} USD",
            f"  cost, with stops            {self.cost:>9,.0f} USD",
            f"  saving                      {self.saving:>9.1%}",
        )
        return "\n".join(lines)


def people(rng: Rng, users: int, days: int) -> list[Person]:
    machines = [rng.choice(_MACHINES) for _ in range(users)]
    return [Person(_flavor(name, price), tuple(_uses(rng, days))) for name, price in machines]


def _flavor(name: str, price: str) -> DevServerFlavor:
    spec: DevServerFlavorSpec = msgspec.structs.replace(FLAVOR, price=Price(per_hour=price, stopped=_HOME))
    return a_flavor(spec, name)


def _uses(rng: Rng, days: int) -> Iterable[Use]:
    """A morning and an afternoon on most working days; some evenings and weekends; a job overnight now and then."""
    for day in range(days):
        date = CREATED.replace(hour=0) + day * _DAY
        weekend = date.weekday() > 4
        if rng.random() < (0.92 if weekend else 0.1):
            continue
        begin = date + rng.uniform(8.1, 10.5) * _HOUR
        lunch = date + rng.uniform(12, 13) * _HOUR
        yield Use(begin, lunch)
        if weekend:
            continue
        end = date + rng.uniform(16.5, 19) * _HOUR
        if rng.random() < 0.08:
            end = date + rng.uniform(26, 31) * _HOUR
        yield Use(lunch + rng.uniform(20, 75) * _MINUTE, end)


def month(persons: Iterable[Person], days: int) -> Account:
    account = Account(CREATED, CREATED + days * _DAY)
    for person in persons:
        _Server(person, account).live()
    return account


class _Server:
    """One server over the whole time."""

    def __init__(self, person: Person, account: Account) -> None:
        self._uses = list(person.uses)
        self._account = account
        self._history: ActivityHistory | None = None
        self._pod = a_pod(person.flavor.spec)
        spec = DevServerSpec(flavor=person.flavor.meta.name, lifecycle=Lifecycle(warnings=()))
        self._seen = Observed(a_server(spec), person.flavor, a_claim(), pods=(self._pod,))
        self._now = account.begun
        self._price = person.flavor.spec.price or Price()

    def live(self) -> None:
        account = self._account
        account.used += sum((min(one.end, account.ended) - one.begin for one in self._uses), timedelta(0))
        while self._now < account.ended:
            self._step()
        cost = self._seen.server.status.cost
        assert cost is not None
        final = accrued(cost, account.ended)
        account.running += timedelta(seconds=final.running_seconds)
        account.cost += Decimal(final.amount)
        hours = Decimal((account.ended - account.begun) / _HOUR)
        account.cost_without += hours * Decimal(self._price.per_hour)

    def _step(self) -> None:
        """Decides, carries that out, and goes on to whatever comes next."""
        decision = decide(self._seen, SETTINGS, self._now)
        server = msgspec.structs.replace(self._seen.server, status=decision.status)
        self._seen = replace(self._seen, server=server)
        if isinstance(decision.edit, StopServer):
            if self._in_use():
                self._account.stopped_in_use.append(self._now)
            self._switch(running=False)
            return
        begins = next((one.begin for one in self._uses if one.begin > self._now), None)
        look = next_probe(self._seen, self._history, self._now)
        times = [time for time in (begins, look, decision.wake, self._account.ended) if time is not None]
        self._now = max(min(times), self._now)
        if self._in_use() and not self._seen.server.spec.running:
            self._account.starts += 1
            self._switch(running=True)
        elif look is not None and look <= self._now:
            self._history = next_history(self._history, self._pod.meta.name, self._reading(), self._now)
            self._seen = replace(self._seen, look=self._history.look)

    def _switch(self, *, running: bool) -> None:
        """As `devctl stop` and the bastion do."""
        server = self._seen.server
        server = msgspec.structs.replace(server, spec=msgspec.structs.replace(server.spec, running=running))
        self._history = None
        self._seen = replace(self._seen, server=server, pods=(self._pod,) if running else (), look=None)

    def _in_use(self) -> bool:
        return any(one.begin <= self._now < one.end for one in self._uses)

    def _reading(self) -> ProbeReading:
        last = max((min(one.end, self._now) for one in self._uses if one.begin <= self._now), default=None)
        ages = ((ActivitySource.SESSION, self._now - last),) if last is not None else ()
        # A server that rests takes a hundredth of a CPU.
        return ProbeReading(ages, (self._now - self._account.begun) / 100)
