"""The work of controllers in Prometheus' form. Imported where a process starts: its parser is heavy."""

from functools import cache

from neorion.keel.kube.control.metrics_port import ReconcileOutcome
from neorion.keel.telemetry.metrics import Metrics


class ControlMetrics:
    """One for all controllers of a process.

    Which series a label names is remembered: looking it up costs more than counting does.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._waited = cache(
            metrics.histogram(
                "neorion_controller_wait_seconds",
                "Time a key was ready before it was worked on.",
                ["controller"],
            ).labels
        )
        self._took = cache(
            metrics.histogram(
                "neorion_controller_reconcile_seconds", "Time one reconcile took.", ["controller"]
            ).labels
        )
        self._endings = cache(
            metrics.counter(
                "neorion_controller_reconciles_total",
                "Reconciles by how they ended.",
                ["controller", "ending"],
            ).labels
        )
        self._ready = cache(
            metrics.gauge(
                "neorion_controller_queue_depth", "Keys ready to be worked on.", ["controller"]
            ).labels
        )
        self._failing = cache(
            metrics.gauge(
                "neorion_controller_failing_keys", "Keys that failed when last worked on.", ["controller"]
            ).labels
        )
        self._writes = cache(
            metrics.counter(
                "neorion_kube_writes_total", "Writes sent to the API server.", ["verb", "resource"]
            ).labels
        )
        self._unreadable = cache(
            metrics.gauge(
                "neorion_kube_unreadable_objects", "Objects that do not fit their type.", ["resource"]
            ).labels
        )

    def worked(self, controller: str, ending: ReconcileOutcome, waited: float, took: float) -> None:
        self._waited(controller).observe(waited)
        self._took(controller).observe(took)
        self._endings(controller, ending).inc()

    def queued(self, controller: str, ready: int, failing: int) -> None:
        self._ready(controller).set(ready)
        self._failing(controller).set(failing)

    def wrote(self, verb: str, resource: str) -> None:
        self._writes(verb, resource).inc()

    def unreadable(self, resource: str, count: int) -> None:
        self._unreadable(resource).set(count)
