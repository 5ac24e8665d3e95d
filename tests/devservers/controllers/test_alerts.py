from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from neorion.devservers.controllers import AlertChannel, AlertController, AlertDelivery
from neorion.devservers.controllers.cache import ClusterCache
from neorion.devservers.decide import SERVER_LABEL
from neorion.devservers.model import Alert, StopReason
from neorion.devservers.model.kube_types import DEVSERVERS
from neorion.devservers.testing import a_pod, a_server
from neorion.keel.base import Instant, Retry
from neorion.keel.clock import VirtualClock, seeded_rng
from neorion.keel.kube import ObjectKey
from neorion.keel.kube.control import InformerFactory
from neorion.keel.kube.core import POD
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 16, 9, tzinfo=UTC)
CLOCK = VirtualClock(lambda: 0.0, Instant(int(NOW.timestamp()) * 1_000_000_000))
ALERT = Alert("mydev", "dev-ann", "ann", NOW + timedelta(minutes=5), StopReason.EXPIRED, "It stops.")


class People:
    """At the terminals and at the webhook; `deaf` ones cannot be told."""

    def __init__(self, *, deaf: bool = False) -> None:
        self._deaf = deaf
        self.heard: list[str] = []
        self.counted: list[tuple[str, bool]] = []

    async def write(self, pod: ObjectKey, text: str) -> None:
        self._hear(f"{pod}: {text}")

    async def send(self, alert: Alert) -> None:
        self._hear(alert.text)

    def _hear(self, text: str) -> None:
        if self._deaf:
            raise Retry("devservers.deaf", "Nobody is there.", hint="Wait.")
        self.heard.append(text)

    def oversee(self, servers: object) -> None: ...

    def probed(self, *, well: bool) -> None: ...

    def warned(self, way: str, *, well: bool) -> None:
        self.counted.append((way, well))


def world() -> ClusterCache:
    informers = InformerFactory(MemoryApi(MemoryCluster(CLOCK), CLOCK, "me"), CLOCK, seeded_rng(1))
    cache = ClusterCache(informers)
    server, pod = a_server(), a_pod()
    labelled = replace(pod.meta, labels={SERVER_LABEL: "mydev"}, resource_version="1")
    informers.observe(DEVSERVERS, replace(server, meta=replace(server.meta, resource_version="1")))
    informers.observe(POD, replace(pod, meta=labelled))
    return cache


async def carried(alerts: AlertController, alert: Alert) -> None:
    deliveries: list[AlertDelivery] = []
    alerts.sender(deliveries.append)(alert)
    for delivery in deliveries:
        await alerts.reconcile(delivery)


async def test_a_warning_goes_both_ways():
    people = People()
    await carried(AlertController(world(), people, people, CLOCK, people), ALERT)
    assert people.heard == ["dev-ann/mydev-x: It stops.", "It stops."]
    assert people.counted == [("terminals", True), ("webhook", True)]


async def test_one_way_that_is_broken_does_not_stop_the_other():
    deaf, people = People(deaf=True), People()
    await carried(AlertController(world(), deaf, people, CLOCK, people), ALERT)
    assert people.heard == ["It stops."]
    assert people.counted == [("terminals", False), ("webhook", True)]


async def test_a_way_that_there_is_not_is_no_errand():
    people = People()
    assert AlertController(world(), people, None, CLOCK).deliveries(ALERT) == [
        AlertDelivery(ALERT, AlertChannel.TERMINALS)
    ]
    assert AlertController(world(), None, None, CLOCK).deliveries(ALERT) == []


async def test_who_is_warned_too_late_is_not_warned():
    people = People()
    late = Alert("mydev", "dev-ann", "ann", NOW, StopReason.EXPIRED, "It stops.")
    await carried(AlertController(world(), people, people, CLOCK), late)
    assert people.heard == []
