"""Homes that have lost their server: kept until the day written on them, then deleted."""

from datetime import datetime

from neorion.devservers.act.mirrors import Mirrors
from neorion.devservers.act.servers import moment
from neorion.devservers.decide import HOME_DELETE_AFTER, HOME_LABEL
from neorion.keel.base import Duration
from neorion.keel.clock import Clock
from neorion.keel.kube import Key
from neorion.keel.kube.control import Applier
from neorion.keel.kube.core import CLAIM, Claim
from neorion.keel.telemetry import logger

log = logger(__name__)


class Homes:
    """The reconcile of homes."""

    def __init__(self, mirrors: Mirrors, applier: Applier, clock: Clock) -> None:
        self._mirrors = mirrors
        self._applier = applier
        self._clock = clock

    async def reconcile(self, key: Key) -> Duration | None:
        home = self._mirrors.claims.get(key)
        if home is None or self._lived_in(home):
            return None
        until = _date(home.meta.annotations.get(HOME_DELETE_AFTER, ""))
        if until is None:
            # Nobody marked it, so nobody has asked for its end.
            return None
        left = (until - moment(self._clock.now())).total_seconds()
        if left > 0:
            return Duration.of(seconds=left)
        log.info("home deleted", home=str(key), kept_until=until.isoformat())
        await self._applier.delete(CLAIM, home)
        return None

    def _lived_in(self, home: Claim) -> bool:
        """A server of the same name has taken it over, or is just about to."""
        server = self._mirrors.servers.get(Key(home.meta.namespace, home.meta.labels.get(HOME_LABEL, "")))
        return server is not None and server.meta.deleted is None


def _date(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
