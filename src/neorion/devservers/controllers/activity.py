"""Probes servers for use. Results stay in this process and are not stored."""

from collections.abc import Callable
from datetime import datetime

from neorion.devservers.controllers.cache import ClusterCache
from neorion.devservers.controllers.devserver import requeue_after, to_datetime
from neorion.devservers.decide import (
    ActivityHistory,
    Observed,
    ProbeReading,
    failed_probe,
    next_history,
    next_probe,
    read,
    together,
)
from neorion.devservers.ports import UNTALLIED, ActivityProber, OperatorMetrics
from neorion.keel.base import Duration, Error
from neorion.keel.clock import Clock
from neorion.keel.kube import ObjectKey
from neorion.keel.telemetry import logger

log = logger(__name__)

# At the same time: a look takes a moment of the API server and of a node each.
PROBE_WORKERS = 8


class ActivityController:
    """Reconciler of probes: runs one when it is due, and returns the time until the next.

    `tell` requeues the server after a probe.
    """

    def __init__(
        self,
        cache: ClusterCache,
        prober: ActivityProber,
        clock: Clock,
        tell: Callable[[ObjectKey], None],
        tally: OperatorMetrics = UNTALLIED,
    ) -> None:
        self._cache = cache
        self._prober = prober
        self._clock = clock
        self._tell = tell
        self._tally = tally

    async def reconcile(self, key: ObjectKey) -> Duration | None:
        now = to_datetime(self._clock.now())
        due, seen = self._due(key, now)
        if due is None or seen is None:
            self._cache.sights.pop(key, None)
            return None
        if due <= now:
            self._cache.sights[key] = await self._probe(self._cache.sights.get(key), seen)
            self._tell(key)
            now = to_datetime(self._clock.now())
            due, _ = self._due(key, now)
        return requeue_after(due, now)

    def _due(self, key: ObjectKey, now: datetime) -> tuple[datetime | None, Observed | None]:
        """When to look, and into which server."""
        seen = self._cache.observed(key)
        if seen is None or seen.pod is None:
            return None, None
        return next_probe(seen, self._cache.sights.get(key), now), seen

    async def _probe(self, before: ActivityHistory | None, seen: Observed) -> ActivityHistory:
        """Looks into all its Pods. If one of them cannot be looked into, nothing is known of the whole."""
        readings = [await self._reading(pod.meta.key) for pod in seen.working_pods]
        known = [reading for reading in readings if reading is not None]
        self._tally.probed(well=len(known) == len(readings))
        taken = to_datetime(self._clock.now())
        if len(known) < len(readings):
            return failed_probe(before, seen.probed, taken)
        return next_history(before, seen.probed, together(known), taken)

    async def _reading(self, pod: ObjectKey) -> ProbeReading | None:
        """Probes a pod. Any failure means only that its activity is unknown."""
        try:
            return read(await self._prober.probe(pod))
        except Error as error:
            log.warning("server not looked into", pod=str(pod), error=str(error))
            return None
