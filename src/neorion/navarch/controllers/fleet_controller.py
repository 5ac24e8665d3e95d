"""Control loop of navarch: a snapshot of each pool, a plan, its actions, and the effects that the records call for."""

import asyncio
from functools import partial
from typing import Final

from neorion.keel.base import Duration, Instant
from neorion.keel.clock import fault_point
from neorion.keel.telemetry import logger
from neorion.navarch.controllers.agent_reports import AgentReports
from neorion.navarch.controllers.bootstrap import NodeBootstrapper
from neorion.navarch.controllers.context import FleetContext
from neorion.navarch.controllers.cordon_drain import CordonDrainer
from neorion.navarch.controllers.effect_runner import EffectRunner
from neorion.navarch.controllers.incident_recorder import IncidentRecorder
from neorion.navarch.controllers.plan_applier import PlanApplier
from neorion.navarch.controllers.provisioning import Provisioner
from neorion.navarch.controllers.remediation import Remediator
from neorion.navarch.controllers.second_witness import SecondWitness
from neorion.navarch.controllers.state_writer import StateWriter
from neorion.navarch.controllers.termination import Terminator
from neorion.navarch.decide import PoolPlan, ReportSilence, plan
from neorion.navarch.model import Node, NodeState, PoolSpec, PurchaseState

log = logger(__name__)

# A tick that took longer than this pauses as long before the next, within a limit.
_LONG_S: Final = 0.01
_REST_S_MAX: Final = 0.05


class FleetController:
    """All appliers, and the tick that starts them."""

    def __init__(self, context: FleetContext) -> None:
        self.context = context
        self.writer = StateWriter(context)
        self.applier = PlanApplier(context, self.writer)
        self.provisioner = Provisioner(context, self.writer)
        self.terminator = Terminator(context, self.writer)
        self.cordon_drainer = CordonDrainer(context, self.writer)
        self.remediator = Remediator(context)
        self.witness = SecondWitness(context)
        self.bootstrapper = NodeBootstrapper(context, self.writer)
        self.incident_recorder = IncidentRecorder(context, self.writer)
        self.reports = AgentReports(context, self.writer, self.incident_recorder)
        self.effects = EffectRunner(context.clock, context.rng, self._wake)
        self._alarm: asyncio.TimerHandle | None = None

    async def tick(self) -> None:
        now, clock = self.context.clock.now(), self.context.clock
        noted, began = self.context.journal.version, clock.monotonic()
        wakes = [self._turn(spec, now) for spec in self.context.specs.values()]
        took = clock.monotonic() - began
        await self.context.journal.wait_durable()
        await fault_point("navarch.tick.decided")
        self._effects()
        if self.context.journal.version != noted:
            # The changes may call for more.
            self.context.wake()
        self._wake_at(min((at for at in wakes if at is not None), default=None), now)
        if took > _LONG_S:
            # With thousands of unhealthy nodes, their agents' requests must still be served.
            await clock.sleep(Duration.of(seconds=min(_REST_S_MAX, took)))

    def plan(self, spec: PoolSpec) -> PoolPlan:
        """The pool's plan at this moment, which is not applied."""
        return plan(self.context.state.view(spec, self.context.started), self.context.clock.now())

    def _turn(self, spec: PoolSpec, now: Instant) -> Instant | None:
        decided = plan(self.context.state.view(spec, self.context.started), now)
        pool_cache = self.context.state.pool(spec.name)
        pool_cache.holds = decided.holds
        if decided.wish is not None and (
            not pool_cache.wishes or pool_cache.wishes[-1].size != decided.wish.size
        ):
            pool_cache.wishes.append(decided.wish)
        elif decided.wish is not None:
            pool_cache.wishes[-1] = decided.wish
        for action in decided.actions:
            if isinstance(action, ReportSilence):
                work = partial(self.reports.silence, action.node, action.since)
                self.effects.ensure(f"silence {action.node}", work)
            else:
                self.applier.apply(action)
        self.incident_recorder.holds(spec.name, decided.holds)
        return decided.wake_at

    def _effects(self) -> None:
        """Starts every effect that the records call for and that is not in progress. Level-triggered."""
        state, ensure = self.context.state, self.effects.ensure
        for purchase in state.purchases.values():
            if purchase.state is PurchaseState.INTENDED:
                ensure(f"buy {purchase.id}", partial(self.provisioner.buy, purchase.id))
        for name in list(state.touched):
            node = state.nodes.get(name)
            if node is not None:
                self._start_node_effects(node)
            if node is None or (node.state is NodeState.ACTIVE and not self.cordon_drainer.due(node)):
                # Active with current marks, as almost all nodes are.
                del state.touched[name]
        for repair in state.open_repairs.values():
            if self.witness.due(repair):
                ensure(f"witness {repair.id}", partial(self.witness.ask, repair.id))
            if self.remediator.due(repair):
                ensure(f"treat {repair.id}", partial(self.remediator.reboot, repair.id))
            elif self.remediator.agent_unreachable(repair):
                why = "its cloud cannot, and its agent is not heard"
                self.remediator.refused(repair.node, repair.id, why)

    def _start_node_effects(self, node: Node) -> None:
        ensure = self.effects.ensure
        if self.bootstrapper.due(node):
            ensure(f"set up {node.id}", partial(self.bootstrapper.bootstrap, node.id), long=True)
        if self.cordon_drainer.due(node):
            ensure(f"mark {node.id}", partial(self.cordon_drainer.mark, node.id))
        if node.state is NodeState.TERMINATING:
            ensure(f"end {node.id}", partial(self.terminator.end, node.id))
        elif node.state is NodeState.DRAINING:
            ensure(f"drain {node.id}", partial(self.cordon_drainer.drain, node.id))

    def _wake(self) -> None:
        self.context.wake()

    def _wake_at(self, at: Instant | None, now: Instant) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if at is not None:
            self._alarm = asyncio.get_running_loop().call_later(at.since(now).seconds, self.context.wake)
