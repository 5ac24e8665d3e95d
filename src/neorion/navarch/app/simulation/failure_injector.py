"""Failures drawn from the seed: of machines, racks, neighbours, clouds and the control plane itself."""

from collections.abc import Awaitable, Callable, Sequence
from random import Random  # noqa: TID251 -- its type alone: the world makes it
from typing import Final

import anyio

from neorion.capacity.fake import FakeCloud
from neorion.keel.base import Duration
from neorion.keel.sim import Crash, World
from neorion.navarch.app.simulation.agents import SimulatedAgent, SimulatedAgents
from neorion.navarch.app.simulation.failure_modes import ILLS, FailureMode
from neorion.navarch.app.simulation.fake_scheduler import FakeScheduler
from neorion.navarch.app.simulation.scenario import PlannedFailure, Scenario

_DAY_S: Final = 86_400.0
# What befalls a whole rack, and what a driver brings.
_RACK_ILLS: Final = ("faulty-gpu", "switch", "hang", "thermal", "host-gone")
_DRIVER_ILLS: Final = ("firmware", "application", "memory")
_SPREAD_S: Final = (30.0, 300.0)
_ROLLOUT_S: Final = 3_600.0
_DOWN_S: Final = (1.0, 120.0)


class FailureInjector:
    """Runs until it is cancelled. `counts` tells what happened how often."""

    def __init__(
        self,
        world: World,
        crowd: SimulatedAgents,
        clouds: Sequence[FakeCloud],
        work: FakeScheduler,
        scene: Scenario,
    ) -> None:
        self._world = world
        self._crowd = crowd
        self._clouds = clouds
        self._work = work
        self._troubles = scene.troubles
        self._blows = scene.blows
        self._rng: Random = world.chance("storm")
        self.counts: dict[str, int] = {}
        self.watchers: list[Callable[[SimulatedAgent, FailureMode], None]] = []

    async def run(self) -> None:
        """Every concern is a process of its own, with exponential times between its events."""
        troubles = self._troubles
        ills = [ill for ill in ILLS.values() if self._factor(ill) > 0]
        each = sum(ill.per_node_day * self._factor(ill) for ill in ills)
        weights = [ill.per_node_day * self._factor(ill) for ill in ills]

        async def wear() -> None:
            self._strike_one(self._rng.choices(ills, weights)[0])

        async with anyio.create_task_group() as tasks:
            self._spread = tasks
            if each:
                tasks.start_soon(self._often, lambda: each * max(1, len(self._crowd.members)), wear)
            for rate, event in (
                (troubles.racks, self._rack),
                (troubles.rollouts, self._rollout),
                (troubles.outages, self._outage),
                (troubles.stockouts, self._stockout),
                (troubles.quotas, self._quota),
                (troubles.blinds, self._blind),
                (troubles.kills, self._kill),
            ):
                if rate:
                    tasks.start_soon(self._often, lambda rate=rate: rate, event)
            for blow in self._blows:
                tasks.start_soon(self._fall, blow)
            if troubles.kill_at_points:
                down = Duration.of(seconds=self._rng.uniform(*_DOWN_S))
                self._world.faults.sometimes(
                    "navarch.*", troubles.kill_at_points, Crash(down), host="controller"
                )

    def strike(self, member: SimulatedAgent, ill: FailureMode) -> None:
        self._count(ill.name)
        for watch in self.watchers:
            watch(member, ill)
        self._crowd.strike(member, ill)

    async def _often(self, rate: Callable[[], float], event: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._world.sleep(self._rng.expovariate(rate() / _DAY_S))
            await event()

    def _factor(self, ill: FailureMode) -> float:
        return self._troubles.wear if ill.blames_the_machine or ill.mute else self._troubles.bugs

    async def _fall(self, blow: PlannedFailure) -> None:
        """Injects a planned failure into the first machines of the fleet or of a rack."""
        await self._world.clock.sleep(blow.at)
        members = [
            one
            for one in self._crowd.members.values()
            if blow.rack is None or self._rack_of(one)[1] == blow.rack
        ]
        for member in members[: blow.nodes]:
            self.strike(member, ILLS[blow.ill])

    # Machines.

    def _strike_one(self, ill: FailureMode) -> None:
        members = list(self._crowd.members.values())
        if members:
            member = self._rng.choice(members)
            self.strike(member, ill)
            if ill.blames_the_machine and self._rng.random() < self._troubles.cascade:
                self._spread.start_soon(self._cascade, member, ill)

    async def _cascade(self, member: SimulatedAgent, ill: FailureMode) -> None:
        """From neighbour to neighbour, for as long as chance has it."""
        while True:
            await self._world.sleep(self._rng.uniform(*_SPREAD_S))
            near = [
                one for one in self._crowd.members.values() if self._rack_of(one) == self._rack_of(member)
            ]
            if not near:
                return
            self._count("cascade")
            self.strike(self._rng.choice(near), ill)
            if self._rng.random() >= self._troubles.cascade:
                return

    async def _rack(self) -> None:
        racks = sorted({self._rack_of(member) for member in self._crowd.members.values()})
        if not racks:
            return
        self._count("rack")
        rack, ill = self._rng.choice(racks), ILLS[self._rng.choice(_RACK_ILLS)]
        for member in [one for one in self._crowd.members.values() if self._rack_of(one) == rack]:
            self.strike(member, ill)

    async def _rollout(self) -> None:
        """One after the other within an hour, as drivers are rolled out."""
        members = list(self._crowd.members.values())
        chosen = self._rng.sample(members, int(len(members) * self._troubles.rollout_share))
        self._count("rollout")
        ill = ILLS[self._rng.choice(_DRIVER_ILLS)]
        for member in chosen:
            await self._world.sleep(self._rng.expovariate(len(chosen) / _ROLLOUT_S))
            if not member.machine.ended.is_set():
                self.strike(member, ill)

    def _rack_of(self, member: SimulatedAgent) -> tuple[str, int]:
        number = int(member.machine.host.rpartition("-")[2])
        return member.cloud.name, number // self._troubles.rack_size

    # Clouds.

    async def _outage(self) -> None:
        self._count("outage")
        behaviour = self._rng.choice(self._clouds).behaviour
        behaviour.down = True
        await self._a_while()
        behaviour.down = False

    async def _stockout(self) -> None:
        self._count("stockout")
        cloud = self._rng.choice(self._clouds)
        regions = {machine.intent.region: 0 for machine in cloud.alive()}
        cloud.behaviour.stock.update(regions)
        await self._a_while()
        for region in regions:
            cloud.behaviour.stock.pop(region, None)

    async def _quota(self) -> None:
        """No more than there are now: what goes may come again, and nothing beyond."""
        self._count("quota")
        cloud = self._rng.choice(self._clouds)
        cloud.behaviour.quota = len(cloud.alive())
        await self._a_while()
        cloud.behaviour.quota = None

    async def _blind(self) -> None:
        """A list that says less than there is."""
        self._count("blind")
        behaviour = self._rng.choice(self._clouds).behaviour
        behaviour.unseen = self._rng.uniform(0.2, 1.0)
        await self._a_while()
        behaviour.unseen = 0.0

    async def _a_while(self) -> None:
        await self._world.sleep(self._rng.expovariate(1 / self._troubles.lasting.seconds))

    def clear(self) -> None:
        """From here on nothing goes wrong by itself."""
        self._world.faults.clear()
        self._work.behaviour.lost = 0.0
        for cloud in self._clouds:
            behaviour = cloud.behaviour
            behaviour.down, behaviour.quota, behaviour.unseen = False, None, 0.0
            behaviour.stock.clear()
            behaviour.lost = behaviour.wedged = self._crowd.unfit = 0.0

    # The control plane.

    async def _kill(self) -> None:
        control = self._world.host("controller")
        if control.up:
            self._count("kill")
            control.crash()
            await self._world.sleep(self._rng.uniform(*_DOWN_S))
            if not control.up:
                control.restart()

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1
