"""A whole navarch in one simulated world: control plane, fake cloud, and a real agent on every machine."""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio

from neorion.capacity.fake import FakeCloud, FakeCloudOptions, FakeMachine, FakeProvider, Fault
from neorion.capacity.gpu import Remedy
from neorion.capacity.provider import MachineId
from neorion.keel.base import Duration, Finding, Instant, Retry, Severity
from neorion.keel.clock import Clock
from neorion.keel.rpc import Channel, connect
from neorion.keel.sim import Host, World
from neorion.keel.store import EventRecord, InlineExecutor, MemoryDisk, Store, open_store
from neorion.navarch.adapters.config_file import default_policy
from neorion.navarch.adapters.null import NoDemand
from neorion.navarch.adapters.policy_engine import InlinePolicyEngine
from neorion.navarch.adapters.probes import FakeProbe
from neorion.navarch.agent import Agent, HostIdentity
from neorion.navarch.app.control_plane import (
    MIGRATIONS,
    ControlPlane,
    ControlPlaneSettings,
    Dependencies,
    build,
)
from neorion.navarch.controllers.context import Backends as Outside
from neorion.navarch.decide import violations
from neorion.navarch.decide.policy import Policy, Rule
from neorion.navarch.model import Health, Node, NodeId, NodeState, PoolSpec
from neorion.navarch.model.spec import HealthRules, Offer, Scaling
from neorion.navarch.ports import DrainProgress, SchedulingStatus
from neorion.navarch.state import HistoryEntry, story_of
from tests.sim.iris_wire import ADDRESS, StreamTransport, attend

TOKEN = "operator-secret"
# A policy of somebody who wants work to begin anew after an application's error.
RESTARTS = Policy(
    "restarts",
    (Rule("again", 'xid.class == "application"', Health.UNHEALTHY, Remedy.RESTART_WORKLOAD, certain=True),),
)
# And of somebody who would rather replace too many nodes than too few.
HARSH = Policy("harsh", (Rule("all", "true", Health.UNHEALTHY, Remedy.REPLACE, certain=True),))
_JUDGE = InlinePolicyEngine({"default": default_policy(), RESTARTS.name: RESTARTS, HARSH.name: HARSH})


def pool(
    size: int, name: str = "training", *, spares: int = 0, health: HealthRules | None = None
) -> PoolSpec:
    """A pool of so many eight-GPU machines of the fake cloud, as the document's example has it but for its size."""
    return PoolSpec(
        name=name,
        offers=(Offer("fake", "gpu_8x_h100_sxm5", ("us-west-2",)),),
        scaling=Scaling(least=size, most=size, spares=spares),
        health=health or HealthRules(),
    )


class Work:
    """A scheduler of work: each node's takes its time to leave. Knows what a person would be angry about."""

    def __init__(self, world: World, leaves_after: Duration) -> None:
        self._world = world
        self._leaves_after = leaves_after
        self.cordoned: set[NodeId] = set()
        self.drained: dict[NodeId, Instant] = {}
        self._begun: dict[NodeId, Instant] = {}
        # Machines that the scheduler does not reach; while it is blind it cannot tell.
        self.down: set[NodeId] = set()
        self.blind = False
        # Its API server does not answer.
        self.away = False

    async def cordon(self, node: Node, why: str) -> None:
        del why
        self.cordoned.add(node.id)

    async def uncordon(self, node: Node) -> SchedulingStatus:
        self.cordoned.discard(node.id)
        return SchedulingStatus(schedulable=True)

    async def drain(self, node: Node, why: str, left: Duration) -> DrainProgress:
        del why
        if self.away:
            raise Retry("kube.unreachable", "The API server does not answer.")
        now = self._world.clock.now()
        begun = self._begun.setdefault(node.id, now)
        if now.since(begun) < self._leaves_after and left:
            return DrainProgress(done=False, left=1, sentence="one job is still running")
        self.drained[node.id] = now
        return DrainProgress(done=True, sentence="its jobs have left")

    async def machine_up(self, node: Node) -> bool | None:
        return None if self.blind else node.id not in self.down

    async def forget(self, node: Node) -> None:
        self.cordoned.discard(node.id)
        self._begun.pop(node.id, None)


@dataclass(frozen=True, slots=True)
class WrongClock:
    """A clock whose time of day is wrong. Sleeps and timeouts are as they should be."""

    clock: Clock
    by: Duration
    behind: bool

    def now(self) -> Instant:
        return self.clock.now() - self.by if self.behind else self.clock.now() + self.by

    def monotonic(self) -> float:
        return self.clock.monotonic()

    async def sleep(self, span: Duration) -> None:
        await self.clock.sleep(span)


class Fleet:
    """The hosts and what runs on them. `plane` is that of the present life of the control plane."""

    def __init__(self, world: World, specs: list[PoolSpec], behaviour: FakeCloudOptions) -> None:
        self.world = world
        self.specs = {spec.name: spec for spec in specs}
        self.cloud = FakeCloud(world.clock, world.chance("cloud"), behaviour)
        self.provider = FakeProvider("fake", self.cloud)
        self.work = Work(world, Duration.of(seconds=30))
        self.control = world.host("controller")
        self.machines = world.host("machines")
        self.plane: ControlPlane | None = None
        self.store: Store | None = None
        self.lives = 0
        # By how much the clocks of agents are wrong.
        self.agents_clock_s = 0.0
        self._dead: dict[MachineId, anyio.Event] = {}
        self._agents: dict[MachineId, anyio.CancelScope] = {}
        self._disk = MemoryDisk()
        self._inspected = -1

    def start(self) -> None:
        self.world.check(self._violations)
        self.machines.start(self._run_machines)
        self.control.start(self._run_plane)

    # What a scenario asks and does.

    def nodes(self, *states: NodeState) -> list[Node]:
        if self.plane is None:
            return []
        found = self.plane.fleet.context.state.nodes.values()
        return [node for node in found if not states or node.state in states]

    def troubles(self) -> set[str]:
        return {one.kind for one in self.plane.fleet.context.state.troubles.values()} if self.plane else set()

    def machine_of(self, node: Node) -> FakeMachine:
        return self.cloud.machines[node.machine]

    def strike(self, node: Node, xid: int, gpu: int = 0) -> None:
        self.machine_of(node).faults.put_nowait(Fault(xid=xid, gpu=gpu))

    def kill_agent(self, node: Node) -> None:
        """The agent alone: its machine goes on."""
        self._dead[node.machine] = anyio.Event()
        self._agents[node.machine].cancel()

    def start_agent(self, node: Node) -> None:
        self._dead.pop(node.machine).set()

    async def until(self, condition: Callable[[], bool], most_s: float = 7_200) -> None:
        with anyio.fail_after(most_s):
            while not condition():
                await self.world.sleep(0.25)

    async def settled(self, active: int, most_s: float = 7_200) -> None:
        """So many nodes serve, nothing is under way, and the cloud has no machine beyond them."""

        def quiet() -> bool:
            return (
                self.plane is not None
                and len(self.nodes(NodeState.ACTIVE)) == active
                and len(self.nodes()) == active + len(self.nodes(NodeState.SPARE))
                and all(repair.step.over for repair in self.plane.fleet.context.state.repairs.values())
                and len(self.cloud.alive()) == len(self.nodes())
            )

        await self.until(quiet, most_s)

    async def story(self, subject: str) -> list[tuple[EventRecord, HistoryEntry]]:
        assert self.plane is not None
        await self.plane.fleet.context.journal.wait_durable()
        return await story_of(self.plane.fleet.context.store, subject, 500)

    # The hosts' programs.

    async def _run_plane(self, host: Host) -> None:
        self.plane = None
        self._disk.crash()
        self.lives += 1
        outside = Outside({"fake": self.provider}, self.work, NoDemand(), _JUDGE)
        settings = ControlPlaneSettings(specs=self.specs, token=TOKEN)
        async with open_store(
            self._disk, migrations=MIGRATIONS, clock=host.clock, lane=InlineExecutor()
        ) as store:
            parts = Dependencies(store, host.clock, host.ids, host.rng)
            async with build(settings, outside, parts) as plane:
                # When its loops have begun: a run that ended before that would leave coroutines nobody awaited.
                await host.clock.sleep(Duration.of(ms=1))
                self.plane = plane
                with self.world.network.listen(ADDRESS, partial(attend, plane.app)):
                    await anyio.sleep_forever()

    async def _run_machines(self, host: Host) -> None:
        async def reside(machine: FakeMachine) -> None:
            who = HostIdentity(machine.intent.id, machine=machine.id)
            clock = WrongClock(
                host.clock, Duration.of(seconds=abs(self.agents_clock_s)), self.agents_clock_s < 0
            )
            probe = FakeProbe(machine, clock)
            while not machine.ended.is_set():
                with anyio.CancelScope() as self._agents[machine.id]:
                    await Agent(who, probe, partial(self._dial, host), clock, host.ids, host.rng).run(TOKEN)
                if machine.id not in self._dead:
                    return
                await self._dead[machine.id].wait()

        await self.cloud.run(reside)

    def _dial(self, host: Host, token: str | None) -> Channel:
        transport = StreamTransport(self.world.network)
        return connect("controller:1", ids=host.ids, token=token, transport=transport)

    def _violations(self) -> list[Finding]:
        twice = [intent for intent, times in self.cloud.bought.items() if times > 1]
        if twice:
            return [Finding(Severity.ERROR, "navarch.double", twice[0], "one intent bought two machines")]
        if self.plane is None or self.plane.fleet.context.journal.version == self._inspected:
            return []
        context = self.plane.fleet.context
        self._inspected = context.journal.version
        return [
            found
            for spec in context.specs.values()
            for found in violations(context.state.view(spec, context.started))
        ]


class _Errors(logging.Handler):
    """Whatever is logged as an error in a run that should have none."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        extra: Any = getattr(record, "neorion_fields", {})
        self.said.append(f"{record.getMessage()} {extra} {record.exc_info[1] if record.exc_info else ''}")


@asynccontextmanager
async def fleet(
    world: World, specs: list[PoolSpec], behaviour: FakeCloudOptions | None = None
) -> AsyncGenerator[Fleet]:
    found = Fleet(world, specs, behaviour or FakeCloudOptions())
    errors = _Errors()
    logging.getLogger().addHandler(errors)
    try:
        found.start()
        yield found
    finally:
        logging.getLogger().removeHandler(errors)
    assert errors.said == []
