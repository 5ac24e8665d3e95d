"""A machine that is taken back soon says so, as its cloud says it to the machine."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from neorion.capacity.fake import FakeCloud, FakeCloudOptions, FakeMachine, Fault
from neorion.capacity.gpu import Remedy
from neorion.capacity.provider import Intent, IntentId
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, seeded_rng
from neorion.navarch.adapters.config_file import default_policy
from neorion.navarch.adapters.probes import FakeProbe
from neorion.navarch.adapters.probes.spot_notice import SERVICES, SpotNoticeProbe
from neorion.navarch.decide.policy import NodeHistory, compiled, evaluate, policy_input
from neorion.navarch.model import EventKind, HealthEvent
from neorion.navarch.testing import NOW, node
from tests.capacity.clouds.gate import Answer, Call, Gate, opened

pytestmark = pytest.mark.anyio

PATIENCE_S = 120.0
ACTION = b'{"action": "terminate", "time": "2026-11-16T08:22:00Z"}'


class Metadata:
    """The service of either cloud. `looks` is how often it has been asked for a notice.

    When it is asked for the second time, its first answer has been heard.
    """

    def __init__(self, cloud: str) -> None:
        self.cloud = cloud
        self.taken = False
        self.looks = 0
        self.looked = anyio.Event()

    async def __call__(self, call: Call) -> Answer:
        if self.cloud == "aws" and call.path == "/latest/api/token" and call.method == "PUT":
            return Answer(body=b"a-pass")
        self.looks += 1
        if self.looks == 2:
            self.looked.set()
        return self._aws(call) if self.cloud == "aws" else self._gcp(call)

    def _aws(self, call: Call) -> Answer:
        if call.headers.get("X-aws-ec2-metadata-token") != "a-pass":
            return Answer(401, b"Unauthorized")
        told = self.taken and call.path == "/latest/meta-data/spot/instance-action"
        return Answer(body=ACTION) if told else Answer(404, b"Not Found")

    def _gcp(self, call: Call) -> Answer:
        if call.headers.get("Metadata-Flavor") != "Google":
            return Answer(403, b"Missing Metadata-Flavor:Google header.")
        if call.path != "/computeMetadata/v1/instance/preempted":
            return Answer(404, b"Not Found")
        return Answer(body=b"TRUE" if self.taken else b"FALSE")


class Quick(SystemClock):
    """Waits for nobody's sake."""

    async def sleep(self, span: Duration) -> None:
        del span
        await anyio.lowlevel.checkpoint()


def _machine() -> FakeMachine:
    cloud = FakeCloud(SystemClock(), seeded_rng(1), FakeCloudOptions(boot=Duration(0)))
    return cloud.make(Intent(IntentId("buy-1"), "navarch-a", "gpu_8x_h100_sxm5", "us-west-2"))


class Listener:
    """What a probe tells, and when it has."""

    def __init__(self) -> None:
        self.events: list[HealthEvent] = []
        self.heard = anyio.Event()

    def tell(self, event: HealthEvent) -> None:
        self.events.append(event)
        self.heard.set()


@asynccontextmanager
async def _listening(cloud: str, gate: Gate) -> AsyncGenerator[Listener]:
    clock, listener = Quick(), Listener()
    probe = SpotNoticeProbe(FakeProbe(_machine(), clock), replace(SERVICES[cloud], url=gate.url), clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(probe.watch, listener.tell, Duration.of(seconds=60))
        yield listener
        tasks.cancel_scope.cancel()


class Still(FakeProbe):
    """Sees nothing, and stops looking at once: whoever watches with it has ended when the notice was told."""

    async def watch(self, tell: Callable[[HealthEvent], None], every: Duration) -> None:
        del tell, every


@pytest.mark.parametrize("cloud", sorted(SERVICES))
async def test_a_notice_is_told_once_and_nothing_before_it(cloud: str):
    metadata, listener, clock = Metadata(cloud), Listener(), Quick()
    async with opened(metadata) as gate, anyio.create_task_group() as tasks:
        probe = SpotNoticeProbe(Still(_machine(), clock), replace(SERVICES[cloud], url=gate.url), clock)
        tasks.start_soon(probe.watch, listener.tell, Duration.of(seconds=60))
        with anyio.fail_after(PATIENCE_S):
            await metadata.looked.wait()
            assert listener.events == []
            metadata.taken = True
            await listener.heard.wait()
    (event,) = listener.events
    assert (event.kind, event.gpu) == (EventKind.PREEMPTION, -1)


async def test_a_service_that_does_not_answer_is_asked_again():
    metadata = Metadata("gcp")
    metadata.taken = True
    async with opened(metadata) as gate:
        gate.lose = lambda _: metadata.looks < 3
        async with _listening("gcp", gate) as listener:
            with anyio.fail_after(PATIENCE_S):
                await listener.heard.wait()
        assert metadata.looks == 3


async def test_what_the_machine_itself_reports_is_told_too():
    metadata, machine = Metadata("aws"), _machine()
    async with opened(metadata) as gate, anyio.create_task_group() as tasks:
        clock, listener = Quick(), Listener()
        service = replace(SERVICES["aws"], url=gate.url)
        tasks.start_soon(
            SpotNoticeProbe(FakeProbe(machine, clock), service, clock).watch,
            listener.tell,
            Duration.of(seconds=60),
        )
        machine.faults.put_nowait(Fault("xid", 79))
        with anyio.fail_after(PATIENCE_S):
            await listener.heard.wait()
        assert [event.xid for event in listener.events] == [79]
        tasks.cancel_scope.cancel()


def test_the_default_policy_replaces_a_machine_that_is_taken_back():
    event = HealthEvent(NOW, EventKind.PREEMPTION)
    verdict = evaluate(compiled(default_policy()), policy_input(event, node(), NodeHistory(), NOW))
    assert (verdict.rule, verdict.certain, verdict.remedy) == ("preempted", True, Remedy.REPLACE)
