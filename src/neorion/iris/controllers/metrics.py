"""Metrics of the controller. Labels come from enums and from the cluster file, so their number is bounded."""

from collections import Counter
from collections.abc import Iterable

from neorion.iris.model import PendingCode, PriorityBand, SliceState, WorkerState
from neorion.iris.state import ClusterState
from neorion.keel.telemetry.metrics import Metrics


class ControllerMetrics:
    """Metrics interface: one method per event, and `refresh` for gauges. This implementation does nothing."""

    def passed(self, seconds: float) -> None:
        """Records a scheduling pass."""

    def committed(self, seconds: float) -> None:
        """Records a commit to the store."""

    def started(self, since_submit: float | None) -> None:
        """Records the start of an attempt. `since_submit` is set for first attempts only."""

    def ended(self, reason: str) -> None:
        """Records the end of an attempt."""

    def scaled(self, group: str, decision: str) -> None:
        """Records a decision about a slice."""

    def refresh(self, cluster: ClusterState, reasons: Iterable[PendingCode]) -> None:
        """Updates the gauges. It takes time for each pending job."""


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
        # Every known label has a value, also if its count is 0.
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
