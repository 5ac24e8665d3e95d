"""The fleet in numbers: the names that dashboards and alert rules count on."""

from neorion.keel.base import Duration
from neorion.keel.telemetry.metrics import Metrics
from neorion.navarch.controllers.fleet_controller import FleetController
from neorion.navarch.decide import budgets_used
from neorion.navarch.model import Health, Node, NodeState, Purchase, Repair, RepairStep

# From a tenth of a second to a day: events are pushed within seconds, bare metal takes half an hour to boot.
_SPANS = (0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 1_800, 3_600, 14_400, 86_400)
# What a repair may come from when it enters a step, as far as that is measured.
_BEFORE = {
    RepairStep.BUYING: ("cordoning",),
    RepairStep.DRAINING: ("cordoning", "buying"),
    RepairStep.TREATING: ("cordoning", "draining"),
    RepairStep.VERIFYING: ("draining", "treating"),
    RepairStep.TERMINATING: ("draining",),
}


class FleetMetrics:
    """Metrics of the fleet. Gauges are read at each scrape; durations are observed when something ends."""

    def __init__(self, metrics: Metrics, fleet: FleetController) -> None:
        self._metrics = metrics
        self._fleet = fleet
        pool = ["pool"]
        self._total = metrics.gauge("navarch_nodes", "Nodes by state.", ["pool", "state"])
        self._healthy = metrics.gauge("navarch_nodes_healthy", "Healthy nodes per pool.", pool)
        self._unhealthy = metrics.gauge("navarch_nodes_unhealthy", "Unhealthy nodes per pool.", pool)
        self._xids = metrics.counter("navarch_xid_errors_total", "GPU XID errors detected.", ["pool", "xid"])
        node = ["pool", "node", "gpu"]
        self._heat = metrics.gauge("navarch_node_gpu_temperature_celsius", "GPU temperature per node.", node)
        self._used = metrics.gauge("navarch_node_gpu_utilization_percent", "GPU utilization per node.", node)
        self._wanted = metrics.gauge("navarch_nodes_wanted", "Nodes a pool should have.", pool)
        self._holds = metrics.gauge("navarch_holds", "What waits, by reason.", ["pool", "code"])
        self._repairs = metrics.gauge("navarch_repairs", "Open repairs by step.", ["pool", "step"])
        self._cost = metrics.gauge("navarch_dollars_per_hour", "What a pool costs.", pool)
        self._purchases = metrics.counter(
            "navarch_purchases_total", "Purchases by outcome.", ["pool", "outcome"]
        )
        self._provision = self._span("provision", "From the order to a node that serves.", pool)
        self._detect = self._span("detect", "From what an agent saw to its verdict.", pool)
        self._cordon = self._span("cordon", "From the need of a repair to the scheduler that knows.", pool)
        self._drain = self._span("drain", "From the first request to leave to an empty node.", pool)
        self._replace = self._span("replace", "From the need of a replacement to its end.", pool)
        self._treat = self._span("treat", "From the need of a reset or reboot to its end.", pool)
        budget = ["pool", "budget"]
        self._budget_used = metrics.gauge("navarch_budget_used", "Repairs that count in a budget.", budget)
        self._budget_most = metrics.gauge("navarch_budget_allowed", "The most of a budget.", budget)
        fleet.reports.detected = self._detected
        metrics.gauge("navarch_leader", "Whether this replica leads.").set(1)
        self._counted: dict[tuple[str, int], int] = {}

    def exposition(self) -> bytes:
        for gauge in (
            self._total,
            self._healthy,
            self._unhealthy,
            self._heat,
            self._used,
            self._holds,
            self._repairs,
            self._budget_used,
            self._budget_most,
        ):
            gauge.clear()
        for spec in self._fleet.context.specs.values():
            self._pool(spec.name)
        for (pool, code), count in self._fleet.reports.xids.items():
            self._xids.labels(pool, str(code)).inc(count - self._counted.get((pool, code), 0))
            self._counted[pool, code] = count
        return self._metrics.exposition() + self._totals()

    def watch(self, record: Node | Repair | Purchase) -> None:
        match record:
            case Purchase():
                self._purchases.labels(record.pool, record.state.value).inc()
            case Node():
                if record.state is NodeState.ACTIVE and record.served == record.since:
                    self._provision.labels(record.pool).observe(record.since.since(record.born).seconds)
            case Repair():
                self._observe(record)

    def _observe(self, repair: Repair) -> None:
        """A repair leaves CORDONING when its scheduler has taken note, and DRAINING when the node is empty."""
        times, since = repair.times, repair.since
        left = _BEFORE.get(repair.step, ())
        last = max((step for step in left if step in times), key=lambda step: times[step].ns, default="")
        if last == "cordoning":
            self._cordon.labels(repair.pool).observe(since.since(repair.opened).seconds)
        elif last == "draining":
            self._drain.labels(repair.pool).observe(since.since(times[last]).seconds)
        if repair.step is RepairStep.DONE:
            whole = self._replace if repair.remedy.costs_the_node else self._treat
            whole.labels(repair.pool).observe(since.since(repair.opened).seconds)

    def _detected(self, pool: str, lag: Duration) -> None:
        self._detect.labels(pool).observe(lag.seconds)

    def _pool(self, pool: str) -> None:
        pool_cache = self._fleet.context.state.pool(pool)
        for state in NodeState:
            if state is not NodeState.TERMINATED:
                self._total.labels(pool, state.value).set(0)
        for node in pool_cache.nodes.values():
            self._total.labels(pool, node.state.value).inc()
            vitals = self._fleet.reports.vitals.get(node.id)
            for gpu in vitals.gpus if vitals else ():
                self._heat.labels(pool, node.id, str(gpu.index)).set(gpu.temperature)
                self._used.labels(pool, node.id, str(gpu.index)).set(gpu.utilisation)
        healthy, unhealthy, _ = self._health(pool)
        self._healthy.labels(pool).set(healthy)
        self._unhealthy.labels(pool).set(unhealthy)
        self._wanted.labels(pool).set(max(pool_cache.state.wanted, 0))
        self._cost.labels(pool).set(sum(node.place.price for node in pool_cache.nodes.values()))
        for hold in pool_cache.holds:
            self._holds.labels(pool, hold.code.value).inc()
        context = self._fleet.context
        for use in budgets_used(
            context.state.view(context.specs[pool], context.started), context.clock.now()
        ):
            self._budget_used.labels(pool, use.name).set(use.used)
            self._budget_most.labels(pool, use.name).set(use.most)
        for repair in pool_cache.repairs.values():
            if not repair.step.over:
                self._repairs.labels(pool, repair.step.value).inc()

    def _health(self, pool: str) -> tuple[int, int, int]:
        """Only machines that exist count: an order is no node yet. Of those that joined, no cloud's id has to be known."""
        there = [
            node
            for node in self._fleet.context.state.pool(pool).nodes.values()
            if node.state is not NodeState.ORDERED and not node.state.leaving
        ]
        unhealthy = sum(node.health is Health.UNHEALTHY for node in there)
        return sum(node.health is Health.HEALTHY for node in there), unhealthy, len(there)

    def _totals(self) -> bytes:
        """`navarch_nodes_total` is a gauge in spite of its name, which the alert rules of users divide by."""
        lines = ["# HELP navarch_nodes_total Total nodes per pool.", "# TYPE navarch_nodes_total gauge"]
        lines += [
            f'navarch_nodes_total{{pool="{pool}"}} {float(self._health(pool)[2])}'
            for pool in self._fleet.context.specs
        ]
        return ("\n".join(lines) + "\n").encode()

    def _span(self, what: str, meaning: str, labels: list[str]):  # noqa: ANN202 -- prometheus' own type
        return self._metrics.histogram(f"navarch_{what}_seconds", meaning, labels, _SPANS)
