"""A control plane in this process, without sockets and without waiting: a fake cloud, real agents on request."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from neorion.capacity.fake import FakeCloud, FakeCloudOptions, FakeProvider
from neorion.capacity.provider import Provider
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, SystemIds, seeded_rng
from neorion.keel.rpc import Channel, MemoryTransport, connect
from neorion.keel.store import InlineExecutor, MemoryDisk, open_store
from neorion.keel.telemetry.metrics import Metrics
from neorion.navarch.adapters.config_file import default_policy
from neorion.navarch.adapters.null import NoDemand, NoScheduler
from neorion.navarch.adapters.policy_engine import InlinePolicyEngine
from neorion.navarch.app.control_plane import (
    MIGRATIONS,
    ControlPlane,
    ControlPlaneSettings,
    Dependencies,
    build,
)
from neorion.navarch.controllers.context import Backends
from neorion.navarch.model import Node, NodeState, PoolSpec
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.gen.navarch_client import AgentServiceClient, FleetServiceClient
from neorion.navarch.ports import Bootstrapper, Scheduler

OPERATOR = "operator-secret"
JOIN = "join-secret"
VIEWER = "viewer-secret"
INSTANT = FakeCloudOptions(boot=Duration(0), stop=Duration(0))


@dataclass(frozen=True, slots=True)
class Running:
    """One control plane, and how to speak to it as anybody."""

    plane: ControlPlane
    cloud: FakeCloud
    provider: FakeProvider
    dial: Callable[[str | None], Channel]

    @property
    def operator(self) -> FleetServiceClient:
        return self.dial(OPERATOR).client(FleetServiceClient)

    def agent(self, token: str | None) -> AgentServiceClient:
        return self.dial(token).client(AgentServiceClient)

    def nodes(self, state: NodeState | None = None) -> list[Node]:
        found = self.plane.fleet.context.state.nodes.values()
        return [node for node in found if state in (None, node.state)]

    async def turn(self) -> None:
        """Until nothing is under way any more."""
        fleet = self.plane.fleet
        noted = -1
        while fleet.context.journal.version != noted or fleet.effects.busy:
            noted = fleet.context.journal.version
            await fleet.tick()
            await fleet.effects.idle()

    async def until(self, so: Callable[[], Awaitable[bool]]) -> None:
        """Waits while the wheel turns by itself: what is not written down wakes it, and the rest is written."""
        context, changed = self.plane.fleet.context, asyncio.Event()
        turn, written = context.wake, context.journal._notify

        def wake() -> None:
            changed.set()
            turn()

        def tell(goal: int) -> None:
            written(goal)
            changed.set()

        context.wake, context.journal._notify = wake, tell
        try:
            while not await so():
                await changed.wait()
                changed.clear()
        finally:
            context.wake, context.journal._notify = turn, written

    async def register(self, node: Node, token: str = JOIN) -> pb.RegisterResponse:
        return await self.agent(token).register(pb.RegisterRequest(node_id=node.machine))

    async def serving(self, count: int) -> list[Node]:
        """So many nodes that have registered, passed their own test and serve."""
        await self.turn()
        for node in self.nodes(NodeState.BOOTING):
            agent = self.agent((await self.register(node)).token)
            await agent.heartbeat(pb.HeartbeatRequest(tested=True))
        await self.turn()
        found = self.nodes(NodeState.ACTIVE)
        assert len(found) == count
        return found


@asynccontextmanager
async def running(
    spec: PoolSpec,
    *,
    behaviour: FakeCloudOptions = INSTANT,
    disk: MemoryDisk | None = None,
    cloud: FakeCloud | None = None,
    seller: type[FakeProvider] = FakeProvider,
    bootstrapper: Bootstrapper | None = None,
    scheduler: Scheduler | None = None,
    others: Sequence[Provider] = (),
) -> AsyncGenerator[Running]:
    clock, rng = SystemClock(), seeded_rng(1)
    found = cloud or FakeCloud(clock, rng, behaviour)
    provider = seller("fake", found)
    providers: dict[str, Provider] = {one.name: one for one in (provider, *others)}
    engine = InlinePolicyEngine({"default": default_policy()})
    world = Backends(providers, scheduler or NoScheduler(), NoDemand(), engine, bootstrapper)
    settings = ControlPlaneSettings(
        {spec.name: spec}, OPERATOR, JOIN, VIEWER, address="http://navarch.test:50051"
    )
    async with open_store(
        disk or MemoryDisk(), migrations=MIGRATIONS, clock=clock, lane=InlineExecutor()
    ) as store:
        parts = Dependencies(store, clock, SystemIds(), rng, Metrics())
        async with build(settings, world, parts) as plane, MemoryTransport(plane.app) as transport:

            def dial(token: str | None) -> Channel:
                return connect("navarch", ids=SystemIds(), token=token, transport=transport)

            yield Running(plane, found, provider, dial)
