"""The state of the simulated cloud. It outlives its buyers, so that a buyer may crash."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from neorion.capacity.fake.machine import FakeMachine
from neorion.capacity.provider import Intent, IntentId, MachineId, MachineState
from neorion.keel.base import Duration, Instant
from neorion.keel.clock import Clock, Rng

Resident = Callable[[FakeMachine], Awaitable[None]]

# How long the cloud lists machines that are gone.
FORGOTTEN_AFTER = Duration.of(hours=1)
# Gone machines beyond this number are dropped earlier.
GONE_MAX = 10_000


@dataclass(slots=True)
class FakeCloudOptions:
    """Options of the simulated cloud; may be changed while it runs.

    `lost` is the chance that a call breaks without an answer, in half of the cases after it was carried out. `stock` limits the
    machines of a scope ("region", "region/zone"), `quota` those of all. `hosts` is how many physical machines there are.
    While it is `down` nothing is answered; `unseen` is the share of machines that its lists leave out.
    """

    boot: Duration = field(default=Duration.of(seconds=2))
    stop: Duration = field(default=Duration.of(seconds=1))
    lag: Duration = field(default=Duration(0))
    lost: float = 0.0
    wedged: float = 0.0
    quota: int | None = None
    stock: dict[str, int] = field(default_factory=dict[str, int])
    prices: dict[str, float] = field(default_factory=dict[str, float])
    denied: bool = False
    down: bool = False
    unseen: float = 0.0
    hosts: int = 1_000


class FakeCloud:
    """The machines by id. `bought` counts the machines made for each intent: more than one is a double purchase."""

    def __init__(
        self, clock: Clock, rng: Rng, behaviour: FakeCloudOptions | None = None, *, name: str = "fake"
    ) -> None:
        # Part of every machine's id, so that two clouds never share an id.
        self.name = name
        self.behaviour = behaviour or FakeCloudOptions()
        self.machines: dict[MachineId, FakeMachine] = {}
        self.bought: dict[IntentId, int] = {}
        self.clock = clock
        self.rng = rng
        self._number = 0
        self._by_intent: dict[IntentId, FakeMachine] = {}
        # Machines that are stopping or gone, and not dropped yet.
        self._stopping: dict[MachineId, FakeMachine] = {}
        self._new: asyncio.Queue[FakeMachine] = asyncio.Queue()

    def make(self, intent: Intent) -> FakeMachine:
        found = self._by_intent.get(intent.id)
        if found is not None:
            return found
        self._number += 1
        now = self.clock.now()
        machine = FakeMachine(
            id=MachineId(f"{self.name}-{self._number:06d}"),
            intent=intent,
            created=now,
            boots=now + self.behaviour.boot,
            host=f"host-{(self._number - 1) % self.behaviour.hosts:04d}",
            wedged=self.rng.random() < self.behaviour.wedged,
        )
        self.bought[intent.id] = self.bought.get(intent.id, 0) + 1
        self.machines[machine.id] = machine
        self._by_intent[intent.id] = machine
        self._new.put_nowait(machine)
        return machine

    def knows(self, intent: IntentId) -> bool:
        return intent in self._by_intent

    def alive(self) -> list[FakeMachine]:
        return [machine for machine in self.machines.values() if not machine.ended.is_set()]

    def stop(self, machine: FakeMachine) -> None:
        if machine.stops is None:
            machine.stops = self.clock.now() + self.behaviour.stop
            self._stopping[machine.id] = machine

    def vanish(self, machine: FakeMachine) -> None:
        """Ends a machine at once without a request: a reclaimed spot machine, or a failed host."""
        machine.stops = self.clock.now()
        machine.ended.set()
        self._stopping[machine.id] = machine

    def settle(self) -> None:
        """Ends machines whose stop time has passed, and drops old ones."""
        now = self.clock.now()
        for machine in list(self._stopping.values()):
            if machine.stops is not None and machine.stops <= now:
                machine.ended.set()
                if now.since(machine.stops) > FORGOTTEN_AFTER or len(self._stopping) > GONE_MAX:
                    self._forget(machine)

    async def run(self, resident: Resident) -> None:
        """Runs `resident` on each machine that boots, until the machine ends."""
        async with anyio.create_task_group() as lives:
            while True:
                lives.start_soon(self._live, await self._new.get(), resident)

    async def _live(self, machine: FakeMachine, resident: Resident) -> None:
        # In a loop, because the wall clock may run slower than the clock of the sleep.
        while machine.state(now := self.clock.now()) is MachineState.PENDING:
            await self.clock.sleep(machine.boots.since(now))
        if machine.wedged or machine.state(now) is not MachineState.RUNNING:
            return
        async with anyio.create_task_group() as life:
            life.start_soon(self._inhabit, machine, resident)
            await machine.ended.wait()
            life.cancel_scope.cancel()

    async def _inhabit(self, machine: FakeMachine, resident: Resident) -> None:
        await resident(machine)

    def _forget(self, machine: FakeMachine) -> None:
        del self.machines[machine.id]
        del self._stopping[machine.id]
        del self._by_intent[machine.intent.id]

    def lists(self, machine: FakeMachine, now: Instant) -> bool:
        """True if a list at this time has the machine: new ones appear late, and some lists are incomplete."""
        number = int(machine.id.rpartition("-")[2])
        return not now < machine.created + self.behaviour.lag and number % 100 >= self.behaviour.unseen * 100
