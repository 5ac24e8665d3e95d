"""Carries warnings to people: into the terminals of their server, and to whoever listens for the whole cluster.

Each way is tried by itself, so that one that is broken neither holds up the other nor repeats it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from neorion.devservers.controllers.cache import ClusterCache
from neorion.devservers.controllers.devserver import to_datetime
from neorion.devservers.model import Alert
from neorion.devservers.ports import UNTALLIED, AlertHook, OperatorMetrics, TerminalNotifier
from neorion.keel.base import Error
from neorion.keel.clock import Clock
from neorion.keel.kube import ObjectKey
from neorion.keel.telemetry import logger

log = logger(__name__)

# Warnings under way at the same time.
CARRIERS = 4


class AlertChannel(StrEnum):
    """How a warning reaches somebody."""

    TERMINALS = "terminals"
    WEBHOOK = "webhook"


@dataclass(frozen=True, slots=True)
class AlertDelivery:
    """One warning on one way."""

    alert: Alert
    way: AlertChannel


class AlertController:
    """The reconcile of errands. A warning that could not be carried is lost; the next one is not."""

    def __init__(
        self,
        mirrors: ClusterCache,
        crier: TerminalNotifier | None,
        hook: AlertHook | None,
        clock: Clock,
        tally: OperatorMetrics = UNTALLIED,
    ) -> None:
        self._mirrors = mirrors
        self._crier = crier
        self._hook = hook
        self._clock = clock
        self._tally = tally

    def errands(self, alert: Alert) -> list[AlertDelivery]:
        ways = ((AlertChannel.TERMINALS, self._crier), (AlertChannel.WEBHOOK, self._hook))
        return [AlertDelivery(alert, way) for way, there in ways if there is not None]

    def teller(self, carry: Callable[[AlertDelivery], None]) -> Callable[[Alert], None]:
        """What whoever decides calls with a warning; it does not wait for it to arrive."""

        def tell(alert: Alert) -> None:
            for errand in self.errands(alert):
                carry(errand)

        return tell

    async def reconcile(self, errand: AlertDelivery) -> None:
        alert = errand.alert
        if alert.stops <= to_datetime(self._clock.now()):
            return
        try:
            if errand.way is AlertChannel.TERMINALS:
                await self._cry(alert)
            elif self._hook is not None:
                await self._hook.send(alert)
        except Error as error:
            server = f"{alert.namespace}/{alert.server}"
            log.warning("warning not delivered", server=server, way=errand.way.value, error=str(error))
            self._tally.warned(errand.way.value, well=False)
        else:
            self._tally.warned(errand.way.value, well=True)

    async def _cry(self, alert: Alert) -> None:
        seen = self._mirrors.observed(ObjectKey(alert.namespace, alert.server))
        if seen is None or self._crier is None:
            return
        for pod in seen.working_pods:
            await self._crier.tell(pod.meta.key, alert.text)
