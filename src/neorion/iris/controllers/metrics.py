"""What the controller counts and measures. Labels come from enums and from the cluster file, so their number is bounded."""

from collections import Counter
from collections.abc import Iterable

from neorion.iris.model import PendingCode, PriorityBand, SliceState, WorkerState
from neorion.iris.state import ClusterState
from neorion.keel.telemetry.metrics import Metrics


class ControllerMetrics:
    """One method for each event, and `refresh` for gauges. This one does nothing."""

    def passed(self, seconds: float) -> None:
        """A scheduling pass was made."""

    def committed(self, seconds: float) -> None:
        """The store took a commit."""

    def started(self, since_submit: float | None) -> None:
        """An attempt began; `since_submit` is of a task's first try, because later ones say nothing about waiting."""

    def ended(self, reason: str) -> None:
        """An attempt ended."""

    def scaled(self, group: str, decision: str) -> None:
        """Something was decided about a slice."""

    def refresh(self, cluster: ClusterState, reasons: Iterable[PendingCode]) -> None:
        """Brings the gauges up to date. It costs time for each waiting job."""


class PrometheusControllerMetrics(ControllerMetrics):
    """Prometheus' counters, gauges and histograms."""

    def __init__(self, metrics: Metrics) -> None:
        self._queue = metrics.gauge("neorion_iris_queue_tasks", "Tasks that wait for a place.", ["band"])
        self._waiting = metrics.gauge("neorion_iris_waiting_jobs", "Jobs that wait, by why.", ["reason"])
        self._workers = metrics.gauge("neorion_iris_workers", "Workers.", ["state"])
        self._slices = metrics.gauge("neorion_iris_slices", "Slices.", ["group", "state"])
        self._passes = metrics.histogram("neorion_iris_pass_seconds", "Time one scheduling pass took.")
        self._starts = metrics.histogram(
            "neorion_iris_start_seconds", "From a submission to the first start of a task of it."
        )
        self._started = metrics.counter("neorion_iris_starts_total", "Attempts that began to run.")
        self._ended = metrics.counter("neorion_iris_ends_total", "Attempts that ended, by how.", ["reason"])
        self._commits = metrics.histogram("neorion_iris_commit_seconds", "Time one commit to the store took.")
        self._scaled = metrics.counter(
            "neorion_iris_scaling_total", "Decisions about slices, by what and why.", ["group", "decision"]
        )
        self._groups: dict[str, None] = {}

    def passed(self, seconds: float) -> None:
        self._passes.observe(seconds)

    def committed(self, seconds: float) -> None:
        self._commits.observe(seconds)

    def started(self, since_submit: float | None) -> None:
        self._started.inc()
        if since_submit is not None:
            self._starts.observe(since_submit)

    def ended(self, reason: str) -> None:
        self._ended.labels(reason).inc()

    def scaled(self, group: str, decision: str) -> None:
        self._scaled.labels(group, decision).inc()

    def refresh(self, cluster: ClusterState, reasons: Iterable[PendingCode]) -> None:
        # Every known label has a value, also where there is none.
        queue = cluster.queue()
        for band in PriorityBand:
            self._queue.labels(band.name.lower()).set(queue.get(band, 0))
        codes = Counter(reasons)
        for code in PendingCode:
            self._waiting.labels(code.value).set(codes[code])
        workers = Counter(
            "draining" if one.draining and one.state is WorkerState.READY else one.state.value
            for one in cluster.workers.values()
        )
        for state in ("draining", *(state.value for state in WorkerState)):
            self._workers.labels(state).set(workers[state])
        slices = Counter((one.group, one.state) for one in cluster.slices.values())
        self._groups.update(dict.fromkeys(group for group, _ in slices))
        for group in self._groups:
            for state in SliceState:
                self._slices.labels(group, state.value).set(slices[group, state])
