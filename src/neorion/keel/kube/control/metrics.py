"""The work of controllers in Prometheus' form. Imported where a process starts: its parser is heavy."""

from neorion.keel.kube.control.measures import Ending
from neorion.keel.telemetry.metrics import Metrics


class ControlMetrics:
    """One for all controllers of a process."""

    def __init__(self, metrics: Metrics) -> None:
        self._waited = metrics.histogram(
            "neorion_controller_wait_seconds", "Time a key was ready before it was worked on.", ["controller"]
        )
        self._took = metrics.histogram(
            "neorion_controller_reconcile_seconds", "Time one reconcile took.", ["controller"]
        )
        self._endings = metrics.counter(
            "neorion_controller_reconciles_total", "Reconciles by how they ended.", ["controller", "ending"]
        )
        self._ready = metrics.gauge(
            "neorion_controller_queue_depth", "Keys ready to be worked on.", ["controller"]
        )
        self._failing = metrics.gauge(
            "neorion_controller_failing_keys", "Keys that failed when last worked on.", ["controller"]
        )
        self._writes = metrics.counter(
            "neorion_kube_writes_total", "Writes sent to the API server.", ["verb", "resource"]
        )

    def worked(self, controller: str, ending: Ending, waited: float, took: float) -> None:
        self._waited.labels(controller).observe(waited)
        self._took.labels(controller).observe(took)
        self._endings.labels(controller, ending).inc()

    def queued(self, controller: str, ready: int, failing: int) -> None:
        self._ready.labels(controller).set(ready)
        self._failing.labels(controller).set(failing)

    def wrote(self, verb: str, resource: str) -> None:
        self._writes.labels(verb, resource).inc()
