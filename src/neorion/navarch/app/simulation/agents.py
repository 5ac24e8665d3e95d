"""The agents of a simulated fleet, all in one: what each does is what a real one does, without a wire in between.

Real agents over a simulated network are tested elsewhere. Here a thousand of them beat for days, so a beat is one call.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import anyio

from neorion.capacity.fake import FakeCloud, FakeMachine
from neorion.capacity.gpu import Remedy, shape_of
from neorion.capacity.node import IdentityClaim
from neorion.keel.base import Denied, Duration, Instant, NotFound, Retry
from neorion.keel.clock import Clock, Rng
from neorion.navarch.app.simulation.failure_modes import FailureMode
from neorion.navarch.controllers.agent_reports import Registration
from neorion.navarch.controllers.fleet_controller import FleetController
from neorion.navarch.model import HealthEvent, NodeId, NodeState
from neorion.navarch.ports import Gpu

# Agents that beat at the same moment: few enough that beats spread over the interval, many enough to be cheap.
_SLOTS: Final = 5
# How long an agent waits for an answer before it asks again.
_ANSWER_S: Final = 30.0
_ASK_AGAIN: Final = Duration.of(seconds=5)
_REBOOT: Final = Duration.of(minutes=4)
# What a treatment that should help is worth: the rest come back.
_HELPS: Final = 0.9
_BACK_S: Final = (300.0, 1_800.0)
# An agent that has this much to say has said it already.
_NEWS_MAX: Final = 1_000
# Before it has registered.
_NOBODY: Final = NodeId("")


@dataclass(slots=True)
class SimulatedAgent:
    """One machine's agent, and the truth about the machine."""

    machine: FakeMachine
    cloud: FakeCloud
    gpus: tuple[Gpu, ...]
    fit: bool
    node: NodeId = _NOBODY
    batch: int = 0
    ills: dict[str, FailureMode] = field(default_factory=dict[str, FailureMode])
    mute: bool = False
    # Treatments that will turn out not to have helped.
    relapses: int = 0
    reboots: int = 0
    wakes: Instant | None = None
    news: asyncio.Queue[HealthEvent] = field(default_factory=lambda: asyncio.Queue[HealthEvent](_NEWS_MAX))

    @property
    def well(self) -> bool:
        return (
            not self.mute
            and not self.relapses
            and not any(ill.blames_the_machine for ill in self.ills.values())
        )

    @property
    def reachable(self) -> bool:
        """Return whether the scheduler reaches the machine by its own means."""
        return self.wakes is None and not any(ill.mute and not ill.agent_only for ill in self.ills.values())


class SimulatedAgents:
    """`line` gives the control plane's fleet while it answers, None while it does not."""

    def __init__(
        self, clouds: Sequence[FakeCloud], line: Callable[[], FleetController | None], clock: Clock, rng: Rng
    ) -> None:
        self._clouds = clouds
        self._line = line
        self._clock = clock
        self._rng = rng
        self._slots: list[dict[str, SimulatedAgent]] = [{} for _ in range(_SLOTS)]
        self._tasks = anyio.create_task_group()
        self.members: dict[str, SimulatedAgent] = {}
        # The share of machines that do not pass their own test when they come up.
        self.unfit = 0.0

    async def run(self, every: Duration) -> None:
        async with self._tasks:
            self._tasks.start_soon(self._beat, every)
            for cloud in self._clouds:
                self._tasks.start_soon(cloud.run, partial(self._reside, cloud))

    def strike(self, member: SimulatedAgent, ill: FailureMode) -> None:
        """Lets it befall the machine now."""
        if ill.gone:
            member.cloud.vanish(member.machine)
            return
        if ill.blames_the_machine or ill.mute:
            member.ills[ill.name] = ill
        member.mute = member.mute or ill.mute
        self._tasks.start_soon(self._last, member, ill)

    async def _last(self, member: SimulatedAgent, ill: FailureMode) -> None:
        """Reports a failure while it lasts, and its end if it passes by itself."""
        gpu = self._rng.randrange(0, len(member.gpus)) if ill.xid else -1
        while not member.machine.ended.is_set():
            if ill.kind is not None and not member.news.full():
                now = self._clock.now()
                member.news.put_nowait(
                    HealthEvent(now, ill.kind, gpu, xid=ill.xid, metrics=dict(ill.metrics))
                )
            pause = ill.lasts or ill.repeats
            if pause is None:
                return
            await self._clock.sleep(pause)
            if ill.lasts is not None:
                self._end(member, ill)
            if ill.name not in member.ills:
                return

    def _end(self, member: SimulatedAgent, ill: FailureMode) -> None:
        member.ills.pop(ill.name, None)
        member.mute = any(other.mute for other in member.ills.values()) or member.wakes is not None

    # One machine's life.

    async def _reside(self, cloud: FakeCloud, machine: FakeMachine) -> None:
        shape = shape_of(machine.intent.instance_type)
        count = shape.gpus if shape else 1
        gpus = tuple(
            Gpu(index, f"GPU-{machine.id}-{index}", temperature=45.0, power=300.0, utilisation=50.0)
            for index in range(count)
        )
        fit = self._rng.random() >= self.unfit
        member = SimulatedAgent(machine, cloud, gpus, fit, reboots=machine.reboots)
        slot = self._slots[self._rng.randrange(0, _SLOTS)]
        try:
            await self._register(member)
            self.members[machine.id] = slot[machine.id] = member
            while True:
                event = await member.news.get()
                while member.mute:
                    await self._clock.sleep(_ASK_AGAIN)
                member.batch += 1
                await self._with_retries(lambda fleet, event=event: self._report(fleet, member, event))
        except (NotFound, Denied):
            # The control plane knows this node no more.
            return
        finally:
            slot.pop(machine.id, None)
            self.members.pop(machine.id, None)

    async def _register(self, member: SimulatedAgent) -> None:
        intent = member.machine.intent
        said = Registration(
            IdentityClaim(intent.id, machine=member.machine.id),
            gpus=len(member.gpus),
            instance_type=intent.instance_type,
        )

        async def register(fleet: FleetController) -> None:
            member.node = (await fleet.reports.register(said)).id
            fleet.reports.heartbeat(member.node, member.gpus, tested=member.fit)

        await self._with_retries(register)

    async def _report(self, fleet: FleetController, member: SimulatedAgent, event: HealthEvent) -> None:
        fleet.context.node(member.node)
        await fleet.reports.report(member.node, member.machine.id, member.batch, [event])

    async def _with_retries(self, question: Callable[[FleetController], Awaitable[None]]) -> None:
        """Asks until it is answered: the control plane may be away, or die before it answers."""
        while True:
            fleet = self._line()
            if fleet is not None:
                with anyio.move_on_after(_ANSWER_S) as patience:
                    try:
                        await question(fleet)
                    except Retry:
                        await self._clock.sleep(_ASK_AGAIN)
                        continue
                if not patience.cancelled_caught:
                    return
            await self._clock.sleep(_ASK_AGAIN)

    # Heartbeats.

    async def _beat(self, every: Duration) -> None:
        pause = every * (1 / _SLOTS)
        while True:
            for slot in self._slots:
                await self._clock.sleep(pause)
                if slot and (fleet := self._line()) is not None:
                    self._beat_all(fleet, list(slot.values()))

    def _beat_all(self, fleet: FleetController, members: list[SimulatedAgent]) -> None:
        heartbeat, repairs = fleet.reports.heartbeat, fleet.context.state.open_repairs
        for member in members:
            if member.node in repairs or member.wakes is not None:
                self._attend(fleet, member)
            if member.mute:
                continue
            try:
                heartbeat(member.node, member.gpus, tested=member.fit)
            except NotFound:
                continue

    def _attend(self, fleet: FleetController, member: SimulatedAgent) -> None:
        """Orders from the control plane, and reboots that the cloud carried out."""
        now = self._clock.now()
        if member.machine.reboots > member.reboots:
            member.reboots = member.machine.reboots
            member.mute, member.wakes = True, now + _REBOOT
        elif member.wakes is not None and not now < member.wakes:
            member.wakes = None
            self._treat(member, Remedy.REBOOT)
        order = fleet.remediator.order(member.node)
        if order is not None and not member.mute:
            self._treat(member, order.remedy)
            fleet.remediator.treated(member.node, order.id)

    def _treat(self, member: SimulatedAgent, remedy: Remedy) -> None:
        ills = list(member.ills.values())
        for ill in ills:
            if ill.cure.rung <= remedy.rung:
                self._end(member, ill)
                if self._rng.random() > _HELPS:
                    member.relapses += 1
                    self._tasks.start_soon(self._return, member, ill)
        member.mute = any(ill.mute for ill in member.ills.values())

    async def _return(self, member: SimulatedAgent, ill: FailureMode) -> None:
        await self._clock.sleep(Duration.of(seconds=self._rng.uniform(*_BACK_S)))
        member.relapses -= 1
        if not member.machine.ended.is_set():
            self.strike(member, ill)

    def serving(self, fleet: FleetController) -> int:
        """Nodes that take work and are well in truth."""
        nodes = fleet.context.state.nodes
        return sum(
            member.well and (node := nodes.get(member.node)) is not None and node.state is NodeState.ACTIVE
            for member in self.members.values()
        )
