"""The fleet in figures, in Prometheus' form. Imported where the process starts: its parser is heavy."""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

from neorion.devservers.decide import rate
from neorion.devservers.model import Phase
from neorion.devservers.model.kube_types import DevServerObject
from neorion.keel.telemetry.metrics import Metrics


class FleetMetrics:
    """Counts probes and warnings as they happen, and servers at each scrape.

    Every replica sees all servers, so a query takes the maximum over replicas and not their sum.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._servers: Iterable[DevServerObject] = ()
        self._phases = metrics.gauge("neorion_devservers_servers", "Servers by phase.", ["phase"])
        self._costs = metrics.gauge(
            "neorion_devservers_cost_per_hour", "What an hour costs now, by user.", ["namespace", "currency"]
        )
        self._looks = metrics.counter(
            "neorion_devservers_looks_total", "Looks for use inside servers, by what they saw.", ["result"]
        )
        self._warnings = metrics.counter(
            "neorion_devservers_warnings_total",
            "Warnings before a stop, by their way to people.",
            ["way", "result"],
        )

    def oversee(self, servers: Iterable[DevServerObject]) -> None:
        self._servers = servers

    def probed(self, *, well: bool) -> None:
        self._looks.labels("seen" if well else "failed").inc()

    def warned(self, way: str, *, well: bool) -> None:
        self._warnings.labels(way, "delivered" if well else "failed").inc()

    def refresh(self) -> None:
        """Counts all servers again, so that no figure stays of a user without servers."""
        phases = Counter(server.status.phase or Phase.PENDING for server in self._servers)
        for phase in Phase:
            self._phases.labels(phase.value).set(phases[phase])
        costs: dict[tuple[str, str], Decimal] = {}
        for server in self._servers:
            cost = server.status.cost
            if cost is not None:
                # A user may write any owner into a server, but only into their own namespace.
                whose = (server.meta.namespace, cost.currency)
                costs[whose] = costs.get(whose, Decimal(0)) + Decimal(rate(cost))
        self._costs.clear()
        for (namespace, currency), sum_ in costs.items():
            self._costs.labels(namespace, currency).set(float(sum_))
