"""Looks into servers to see whether anybody uses them. What is seen stays in this process: nothing is written."""

from collections.abc import Callable
from datetime import datetime

from neorion.devservers.controllers.cache import ClusterCache
from neorion.devservers.controllers.devserver import requeue_after, to_datetime
from neorion.devservers.decide import ActivityHistory, failed_probe, next_history, next_look, read
from neorion.devservers.ports import UNTALLIED, ActivityProber, OperatorMetrics
from neorion.keel.base import Duration, Error
from neorion.keel.clock import Clock
from neorion.keel.kube import ObjectKey
from neorion.keel.telemetry import logger

log = logger(__name__)

# At the same time: a look takes a moment of the API server and of a node each.
LOOKERS = 8


class ActivityController:
    """The reconcile of looks: takes one when it is due, and says when the next will be.

    `tell` wakes whoever decides about the server.
    """

    def __init__(
        self,
        mirrors: ClusterCache,
        looker: ActivityProber,
        clock: Clock,
        tell: Callable[[ObjectKey], None],
        tally: OperatorMetrics = UNTALLIED,
    ) -> None:
        self._mirrors = mirrors
        self._looker = looker
        self._clock = clock
        self._tell = tell
        self._tally = tally

    async def reconcile(self, key: ObjectKey) -> Duration | None:
        now = to_datetime(self._clock.now())
        due, pod = self._due(key, now)
        if due is None or pod is None:
            self._mirrors.sights.pop(key, None)
            return None
        if due <= now:
            self._mirrors.sights[key] = await self._look(self._mirrors.sights.get(key), pod)
            self._tell(key)
            now = to_datetime(self._clock.now())
            due, _ = self._due(key, now)
        return requeue_after(due, now)

    def _due(self, key: ObjectKey, now: datetime) -> tuple[datetime | None, ObjectKey | None]:
        """When to look, and into which pod."""
        seen = self._mirrors.observed(key)
        if seen is None or seen.pod is None:
            return None, None
        return next_look(seen, self._mirrors.sights.get(key), now), seen.pod.meta.key

    async def _look(self, before: ActivityHistory | None, pod: ObjectKey) -> ActivityHistory:
        """Whatever goes wrong, it means only that nothing is known."""
        try:
            reading = read(await self._looker.look(pod))
        except Error as error:
            log.warning("server not looked into", pod=str(pod), error=str(error))
            reading = None
        self._tally.looked(well=reading is not None)
        taken = to_datetime(self._clock.now())
        if reading is None:
            return failed_probe(before, pod.name, taken)
        return next_history(before, pod.name, reading, taken)
