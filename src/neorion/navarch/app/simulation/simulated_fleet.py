"""One simulated fleet: the real control plane over a store in memory, fake clouds, and a crowd of agents."""

from collections.abc import Callable
from typing import Final

import anyio

from neorion.capacity.fake import FakeCloud, FakeCloudOptions, FakeProvider
from neorion.capacity.provider import Provider
from neorion.keel.base import Duration
from neorion.keel.sim import Host, World
from neorion.keel.store import InlineExecutor, MemoryDisk, open_store
from neorion.navarch.adapters.null import NoDemand
from neorion.navarch.adapters.policy_engine import InlinePolicyEngine
from neorion.navarch.app.control_plane import (
    MIGRATIONS,
    ControlPlane,
    ControlPlaneSettings,
    Dependencies,
    build,
)
from neorion.navarch.app.simulation.agents import SimulatedAgents
from neorion.navarch.app.simulation.failure_injector import FailureInjector
from neorion.navarch.app.simulation.fake_scheduler import FakeScheduler, SchedulerBehaviour
from neorion.navarch.app.simulation.scenario import Scenario
from neorion.navarch.controllers.context import Backends as Outside
from neorion.navarch.controllers.fleet_controller import FleetController
from neorion.navarch.model import Node, Purchase, Repair

_TOKEN: Final = "simulated"  # noqa: S105 -- a simulation checks no token


class SimulatedFleet:
    """All parts of one run. `plane` is the running control plane, None while it is away."""

    def __init__(self, world: World, scene: Scenario) -> None:
        self.world = world
        self.scene = scene
        troubles = scene.troubles
        self.clouds = [
            FakeCloud(
                world.clock,
                world.chance(f"cloud {name}"),
                FakeCloudOptions(
                    boot=scene.boot,
                    stop=scene.stop,
                    lag=scene.lag,
                    lost=troubles.lost,
                    wedged=troubles.wedged,
                ),
                name=name,
            )
            for name in scene.providers
        ]
        self.work = FakeScheduler(
            world.clock,
            world.chance("work"),
            SchedulerBehaviour(scene.leaves_within, scene.joins_within, troubles.scheduler_lost),
        )
        self.crowd = SimulatedAgents(self.clouds, self._line, world.clock, world.chance("crowd"))
        self.crowd.unfit = troubles.unfit
        self.work.kubelet = self._reachable
        self.storm = FailureInjector(world, self.crowd, self.clouds, self.work, scene)
        self.plane: ControlPlane | None = None
        self._control = world.host("controller")
        # Is told of every change of a node, a repair or a purchase.
        self.watch: Callable[[Node | Repair | Purchase], None] = lambda _: None
        self.lives = 0
        self.disk = MemoryDisk()
        self._judge = InlinePolicyEngine(scene.policies)

    def start(self) -> None:
        self.world.host("machines").start(self._run_machines)
        self.world.host("controller").start(self._run_plane)

    @property
    def fleet(self) -> FleetController | None:
        return self._line()

    async def settled(self, most: Duration) -> bool:
        """Reports whether every pool reaches its desired size within this time and nothing is in progress."""
        with anyio.move_on_after(most.seconds):
            while not self.quiet():
                await self.world.sleep(30)
        return self.quiet()

    def quiet(self) -> bool:
        fleet = self._line()
        if fleet is None:
            return False
        state = fleet.context.state
        alive = sum(len(cloud.alive()) for cloud in self.clouds)
        return (
            not state.open_repairs
            and all(member.well for member in self.crowd.members.values())
            and alive == len(state.nodes)
            and all(self._complete(fleet, name) for name in self.scene.specs)
        )

    def _complete(self, fleet: FleetController, pool: str) -> bool:
        spec, pool_cache = self.scene.specs[pool], fleet.context.state.pool(pool)
        counts: dict[str, int] = {}
        for node in pool_cache.nodes.values():
            counts[node.state.value] = counts.get(node.state.value, 0) + 1
        want = {"active": max(pool_cache.state.wanted, spec.scaling.least), "spare": spec.scaling.spares}
        return counts == {state: count for state, count in want.items() if count}

    def _reachable(self, node: Node) -> bool:
        member = self.crowd.members.get(node.machine)
        return member is not None and member.reachable

    def _line(self) -> FleetController | None:
        return self.plane.fleet if self.plane is not None and self._control.up else None

    # The hosts' programs.

    async def _run_plane(self, host: Host) -> None:
        self.plane = None
        self.disk.crash()
        self.lives += 1
        providers: dict[str, Provider] = {
            cloud.name: FakeProvider(cloud.name, cloud) for cloud in self.clouds
        }
        outside = Outside(providers, self.work, NoDemand(), self._judge)
        rhythm = self.scene.rhythm
        settings = ControlPlaneSettings(dict(self.scene.specs), _TOKEN, autoscale=rhythm.tick, rhythm=rhythm)
        async with (
            open_store(self.disk, migrations=MIGRATIONS, clock=host.clock, lane=InlineExecutor()) as store,
            build(settings, outside, Dependencies(store, host.clock, host.ids, host.rng)) as plane,
        ):
            plane.fleet.context.watch = self.watch
            # After its loops have begun. A run that ended earlier would leave coroutines that are never awaited.
            await host.clock.sleep(Duration.of(ms=1))
            self.plane = plane
            await anyio.sleep_forever()

    async def _run_machines(self, host: Host) -> None:
        del host
        every = min(spec.timing.heartbeat for spec in self.scene.specs.values())
        await self.crowd.run(every)
