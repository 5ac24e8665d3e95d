"""Delivers warnings to people: into the terminals of their server, and to the cluster's webhook.

Each channel is tried by itself, so that a broken one neither delays nor repeats the other.
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
ALERT_WORKERS = 4


class AlertChannel(StrEnum):
    """Channel by which a warning is delivered."""

    TERMINALS = "terminals"
    WEBHOOK = "webhook"


@dataclass(frozen=True, slots=True)
class AlertDelivery:
    """One warning on one channel."""

    alert: Alert
    channel: AlertChannel


class AlertController:
    """Reconciler of deliveries. A warning that could not be delivered is dropped; the next one is tried again."""

    def __init__(
        self,
        cache: ClusterCache,
        terminals: TerminalNotifier | None,
        hook: AlertHook | None,
        clock: Clock,
        tally: OperatorMetrics = UNTALLIED,
    ) -> None:
        self._cache = cache
        self._terminals = terminals
        self._hook = hook
        self._clock = clock
        self._tally = tally

    def deliveries(self, alert: Alert) -> list[AlertDelivery]:
        channels = ((AlertChannel.TERMINALS, self._terminals), (AlertChannel.WEBHOOK, self._hook))
        return [AlertDelivery(alert, channel) for channel, adapter in channels if adapter is not None]

    def sender(self, enqueue: Callable[[AlertDelivery], None]) -> Callable[[Alert], None]:
        """Returns the function that other controllers call with a warning. It does not wait for the delivery."""

        def send(alert: Alert) -> None:
            for delivery in self.deliveries(alert):
                enqueue(delivery)

        return send

    async def reconcile(self, delivery: AlertDelivery) -> None:
        alert = delivery.alert
        if alert.stops <= to_datetime(self._clock.now()):
            return
        try:
            if delivery.channel is AlertChannel.TERMINALS:
                await self._write_to_terminals(alert)
            elif self._hook is not None:
                await self._hook.send(alert)
        except Error as error:
            server = f"{alert.namespace}/{alert.server}"
            log.warning("warning not delivered", server=server, way=delivery.channel.value, error=str(error))
            self._tally.warned(delivery.channel.value, well=False)
        else:
            self._tally.warned(delivery.channel.value, well=True)

    async def _write_to_terminals(self, alert: Alert) -> None:
        seen = self._cache.observed(ObjectKey(alert.namespace, alert.server))
        if seen is None or self._terminals is None:
            return
        for pod in seen.working_pods:
            await self._terminals.write(pod.meta.key, alert.text)
