"""Homes that have lost their server: kept until the day written on them, then deleted."""

from datetime import UTC, datetime

from neorion.devservers.controllers.cache import ClusterCache
from neorion.devservers.controllers.devserver import Writers, requeue_after, to_datetime
from neorion.devservers.decide import HOME_DELETE_AFTER, HOME_LABEL
from neorion.keel.base import Duration
from neorion.keel.clock import Clock
from neorion.keel.kube import DeleteOptions, ObjectKey
from neorion.keel.kube.core import CLAIM, PersistentVolumeClaim
from neorion.keel.telemetry import logger

log = logger(__name__)


class HomeController:
    """The reconcile of homes."""

    def __init__(self, cache: ClusterCache, writers: Writers, clock: Clock) -> None:
        self._cache = cache
        self._api = writers.api
        self._fence = writers.fence
        self._clock = clock

    async def reconcile(self, key: ObjectKey) -> Duration | None:
        home = self._cache.claims.get(key)
        if home is None or home.meta.deleted is not None or self._lived_in(home):
            return None
        due = _date(home.meta.annotations.get(HOME_DELETE_AFTER, ""))
        if due is None:
            # Without a deletion time the home stays.
            return None
        now = to_datetime(self._clock.now())
        if due > now:
            return requeue_after(due, now)
        self._fence.check()
        # Exactly as it was seen: a server that takes it over at this moment takes the mark off, and keeps it.
        how = DeleteOptions(uid=home.meta.uid, version=home.meta.resource_version)
        await self._api.delete(CLAIM, key.name, key.namespace, how)
        log.info("home deleted", home=str(key), kept_until=due.isoformat())
        return None

    def _lived_in(self, home: PersistentVolumeClaim) -> bool:
        """Reports whether a server of the same name exists, which uses the home or will mark it again."""
        key = ObjectKey(home.meta.namespace, home.meta.labels.get(HOME_LABEL, ""))
        servers = self._cache.servers
        return servers.get(key) is not None or key in servers.unreadable


def _date(text: str) -> datetime | None:
    """Parses a deletion time. A person may have edited it, so a date without time or zone is accepted."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
