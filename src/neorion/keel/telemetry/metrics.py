"""Counters, gauges and histograms in Prometheus' format. A process passes its registry to its parts; none is global."""

import re
from collections.abc import Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST

# From a tenth of a millisecond to five minutes: scheduling passes and node boots on one scale.
SECONDS: Final = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300)

_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")


class Metrics:
    """The metrics of a process.

    Checks names here once, so that dashboards can rely on them: a prefix, base units (`_seconds`, `_bytes`), counters
    end in `_total`.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()

    def counter(self, name: str, meaning: str, labels: Sequence[str] = ()) -> Counter:
        _check(name, counts=True)
        return Counter(name, meaning, labels, registry=self._registry)

    def gauge(self, name: str, meaning: str, labels: Sequence[str] = ()) -> Gauge:
        _check(name, counts=False)
        return Gauge(name, meaning, labels, registry=self._registry)

    def histogram(
        self, name: str, meaning: str, labels: Sequence[str] = (), buckets: Sequence[float] = SECONDS
    ) -> Histogram:
        _check(name, counts=False)
        return Histogram(name, meaning, labels, buckets=buckets, registry=self._registry)

    def exposition(self) -> bytes:
        return generate_latest(self._registry)


class LoopMetrics:
    """Measures every tick of every loop: pass it to a Loop as its `watch`."""

    def __init__(self, metrics: Metrics) -> None:
        self._seconds = metrics.histogram("neorion_loop_tick_seconds", "Time one tick took.", ["loop"])
        self._failures = metrics.counter("neorion_loop_failures_total", "Ticks that failed.", ["loop"])

    def __call__(self, name: str, seconds: float, *, failed: bool) -> None:
        self._seconds.labels(name).observe(seconds)
        if failed:
            self._failures.labels(name).inc()


def _check(name: str, *, counts: bool) -> None:
    if not _NAME.fullmatch(name) or name.endswith("_total") is not counts:
        raise ValueError(f"metric {name}: a prefix and snake_case, _total for counters and for nothing else")
    if name.endswith(("_ms", "_milliseconds", "_minutes", "_mb", "_kb")):
        raise ValueError(f"metric {name}: base units only, seconds and bytes")
