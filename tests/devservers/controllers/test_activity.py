"""Hours of looks in a moment: who is used stays, who is not stops, and who cannot be seen is left alone."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from neorion.devservers.controllers import ActivityController, ClusterCache
from neorion.devservers.controllers.devserver import to_datetime
from neorion.devservers.decide import SERVER_LABEL, decide
from neorion.devservers.model import DevServerSpec, DevServerStatus, Lifecycle, Phase, StopReason
from neorion.devservers.model.kube_types import DEVSERVERFLAVORS, DEVSERVERS
from neorion.devservers.testing import SETTINGS, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.base import Instant, Retry
from neorion.keel.clock import VirtualClock, seeded_rng
from neorion.keel.kube import ObjectKey, ObjectMeta
from neorion.keel.kube.control import InformerFactory
from neorion.keel.kube.core import POD
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

pytestmark = pytest.mark.anyio

HOUR = 3600.0
BEGAN = Instant(int(CREATED.timestamp()) * 1_000_000_000)
# What a person does so many seconds after the start, as lines of the probe.
Doing = Callable[[float], str]


@dataclass
class Day:
    """One server, and an operator that decides about it after every look."""

    doing: Doing
    lifecycle: Lifecycle = field(default_factory=lambda: Lifecycle(idle_timeout=3600))
    passed: float = 0.0
    looks: int = 0
    versions: int = 0
    told: list[ObjectKey] = field(default_factory=list[ObjectKey])

    def __post_init__(self) -> None:
        self.clock = VirtualClock(lambda: self.passed, BEGAN)
        self.informers = InformerFactory(
            MemoryApi(MemoryCluster(self.clock), self.clock, "me"), self.clock, seeded_rng(1)
        )
        self.cache = ClusterCache(self.informers)
        self.server = a_server(
            DevServerSpec(flavor="cpu-small", lifecycle=self.lifecycle),
            DevServerStatus(phase=Phase.RUNNING, running_since=CREATED),
        )
        pod = a_pod()
        self.informers.observe(DEVSERVERFLAVORS, replace(a_flavor(), meta=self._next(a_flavor().meta)))
        labelled = replace(pod.meta, labels={SERVER_LABEL: "mydev"})
        self.informers.observe(POD, replace(pod, meta=self._next(labelled)))
        self._show()

    async def probe(self, pod: ObjectKey) -> str:
        assert pod == ObjectKey("dev-ann", "mydev-x")
        self.looks += 1
        lines = self.doing(self.passed)
        return f"now {self.clock.now().ns // 1_000_000_000}\n{lines}\nend\n"

    async def pass_by(self, hours: float) -> StopReason | None:
        """Why the server was stopped meanwhile."""
        probes, key = (
            ActivityController(self.cache, self, self.clock, self.told.append),
            self.server.meta.key,
        )
        while self.passed < hours * HOUR:
            wait = await probes.reconcile(key)
            seen = self.cache.observed(key)
            assert wait is not None
            assert wait.seconds > 0
            assert seen is not None
            decision = decide(seen, SETTINGS, to_datetime(self.clock.now()))
            if decision.edit is not None:
                return getattr(decision.edit, "reason", None)
            self.server = replace(self.server, status=decision.status)
            self._show()
            self.passed += wait.seconds
        return None

    def _show(self) -> None:
        self.informers.observe(DEVSERVERS, replace(self.server, meta=self._next(self.server.meta)))

    def _next(self, meta: ObjectMeta) -> ObjectMeta:
        self.versions += 1
        return replace(meta, resource_version=str(self.versions))


async def test_an_unused_server_stops_after_its_hour_and_was_seldom_looked_into():
    day = Day(lambda _: "cpu 1000")
    assert await day.pass_by(24) is StopReason.IDLE
    assert day.passed == HOUR
    assert day.looks <= 12
    assert len(day.told) == day.looks


async def test_a_server_whose_cpu_works_stays_and_is_seldom_looked_into():
    day = Day(lambda now: f"cpu {int(now * 100_000)}")
    assert await day.pass_by(24) is None
    assert day.looks <= 24 * 6 + 2
    assert day.server.status.activity is not None
    assert day.server.status.activity.source == "CPU use"


async def test_the_hour_counts_from_the_last_time_somebody_was_there():
    day = Day(lambda now: "cpu 1000" if now > 2 * HOUR else "cpu 1000\nsession open")
    assert await day.pass_by(24) is StopReason.IDLE
    assert 2.8 * HOUR <= day.passed <= 3 * HOUR


@pytest.mark.parametrize("words", ["", "cpu 1000\ngpu unknown", "terminal unknown\ncpu 1000"])
async def test_a_server_of_which_not_everything_can_be_seen_runs_on(words: str):
    day = Day(lambda _: words)
    assert await day.pass_by(24) is None
    assert next(one.status for one in day.server.status.conditions if one.type == "Idle") == "Unknown"


async def test_a_server_that_cannot_be_looked_into_runs_on_and_is_not_asked_all_the_time():
    def unreachable(now: float) -> str:
        raise Retry("kube.unreachable", f"The node does not answer after {now} s.", hint="Wait.")

    day = Day(unreachable)
    assert await day.pass_by(24) is None
    assert day.looks <= 24 * 6 + 10


async def test_what_was_seen_of_a_server_is_forgotten_with_it():
    day = Day(lambda _: "cpu 1000")
    await day.pass_by(0.1)
    assert day.cache.sights
    day.cache.servers.delete(replace(day.server.meta, resource_version="1000"))
    probes = ActivityController(day.cache, day, day.clock, day.told.append)
    assert await probes.reconcile(day.server.meta.key) is None
    assert not day.cache.sights
