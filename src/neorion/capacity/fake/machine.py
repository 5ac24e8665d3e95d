"""One machine of the simulated cloud, and its faults."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from neorion.capacity.provider import Intent, Machine, MachineId, MachineState
from neorion.keel.base import Instant


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that a GPU machine reports: `kind` is its name in reports, `xid` its code if it has one."""

    kind: str = "xid"
    xid: int = 0
    gpu: int = 0
    message: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(slots=True)
class FakeMachine:
    """A machine and its state. `faults` holds faults to be reported; `wedged` machines boot and never report."""

    id: MachineId
    intent: Intent
    created: Instant
    boots: Instant
    host: str
    wedged: bool = False
    stops: Instant | None = None
    # A machine with more faults than this would not be running.
    faults: "asyncio.Queue[Fault]" = field(default_factory=lambda: asyncio.Queue(1_000))
    reboots: int = 0
    resets: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    # The last conversion, because a fleet is listed far more often than it changes.
    _listed: Machine | None = None

    def state(self, now: Instant) -> MachineState:
        if self.ended.is_set():
            return MachineState.GONE
        if self.stops is not None:
            return MachineState.STOPPING
        return MachineState.PENDING if now < self.boots else MachineState.RUNNING

    def as_machine(self, now: Instant) -> Machine:
        state = self.state(now)
        if self._listed is None or self._listed.state is not state:
            self._listed = self._machine(state)
        return self._listed

    def _machine(self, state: MachineState) -> Machine:
        return Machine(
            id=self.id,
            intent=self.intent.id,
            owner=self.intent.owner,
            state=state,
            instance_type=self.intent.instance_type,
            region=self.intent.region,
            zone=self.intent.zone,
            name=self.intent.id,
            address=f"{self.id}.invalid",
            private_address=f"{self.id}.invalid",
            host=self.host,
            spot=self.intent.spot,
            created=self.created,
        )
