"""The provider port over the simulated cloud."""

from collections.abc import Sequence

from neorion.capacity.fake.cloud import FakeCloud
from neorion.capacity.fake.machine import FakeMachine
from neorion.capacity.provider import (
    Capability,
    Intent,
    Machine,
    MachineId,
    Offering,
    no_capacity,
    no_machine,
    not_allowed,
    quota,
    unknown_outcome,
)
from neorion.keel.clock import fault_point


class FakeProvider:
    """Sells the machines of one simulated cloud under its own name."""

    capabilities = frozenset(Capability)

    def __init__(self, name: str, cloud: FakeCloud) -> None:
        self.name = name
        self.cloud = cloud
        # Calls without a response, so far.
        self.lost = 0

    async def provision(self, intent: Intent) -> Machine:
        done = await self._may_be_lost()
        if not self.cloud.knows(intent.id):
            self._check_stock(intent)
        machine = self.cloud.make(intent)
        await fault_point("provider.provision.done")
        self._answer(lost=done)
        return machine.as_machine(self.cloud.clock.now())

    async def list(self, owner: str) -> Sequence[Machine]:
        self._check_answers()
        self.cloud.settle()
        now = self.cloud.clock.now()
        return [
            machine.as_machine(now)
            for machine in self.cloud.alive()
            if machine.intent.owner == owner and self.cloud.lists(machine, now)
        ]

    async def describe(self, machine: MachineId) -> Machine:
        self._check_answers()
        return self._find(machine).as_machine(self.cloud.clock.now())

    async def terminate(self, machine: MachineId) -> None:
        done = await self._may_be_lost()
        self.cloud.stop(self._find(machine))
        await fault_point("provider.terminate.done")
        self._answer(lost=done)

    async def reboot(self, machine: MachineId) -> None:
        done = await self._may_be_lost()
        found = self._find(machine)
        if found.stops is not None:
            raise no_machine(self.name, machine)
        found.reboots += 1
        self._answer(lost=done)

    async def offerings(self, instance_types: Sequence[str]) -> Sequence[Offering]:
        self._check_answers()
        prices = self.cloud.behaviour.prices
        return [
            Offering(kind, region, prices[f"{region}/{kind}"])
            for kind in instance_types
            for region in sorted({key.partition("/")[0] for key in prices})
            if f"{region}/{kind}" in prices
        ]

    def _find(self, machine: MachineId) -> FakeMachine:
        self.cloud.settle()
        found = self.cloud.machines.get(machine)
        if found is None:
            raise no_machine(self.name, machine)
        return found

    def _check_answers(self) -> None:
        if self.cloud.behaviour.down:
            raise unknown_outcome(self.name, "there was no answer")
        if self.cloud.behaviour.denied:
            raise not_allowed(self.name, "the key is not known")

    def _check_stock(self, intent: Intent) -> None:
        behaviour = self.cloud.behaviour
        if behaviour.quota is None and not behaviour.stock:
            return
        self.cloud.settle()
        alive = self.cloud.alive()
        if behaviour.quota is not None and len(alive) >= behaviour.quota:
            raise quota(self.name, intent.region, f"{len(alive)} machines")
        for scope in (intent.region, f"{intent.region}/{intent.zone}"):
            there = sum(
                scope in (one.intent.region, f"{one.intent.region}/{one.intent.zone}") for one in alive
            )
            if scope in behaviour.stock and there >= behaviour.stock[scope]:
                raise no_capacity(self.name, scope)

    async def _may_be_lost(self) -> bool:
        """True if the response of this call will be lost; raises if the request itself is lost."""
        self._check_answers()
        await fault_point("provider.call.sent")
        chance = self.cloud.rng.random() if self.cloud.behaviour.lost else 1.0
        if chance < self.cloud.behaviour.lost / 2:
            self.lost += 1
            raise unknown_outcome(self.name, "the request was lost")
        return chance < self.cloud.behaviour.lost

    def _answer(self, *, lost: bool) -> None:
        if lost:
            self.lost += 1
            raise unknown_outcome(self.name, "the answer was lost")
