"""The wheel of navarch: a snapshot of each pool, a plan, its actions, and the effects that follow from the records."""

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

# A turn that took longer than this rests as long before the next, and never so long that anybody would notice.
_LONG_S: Final = 0.01
_REST_S_MAX: Final = 0.05


class FleetController:
    """All appliers, and the tick that sets them to work."""

    def __init__(self, deck: FleetContext) -> None:
        self.deck = deck
        self.moves = StateWriter(deck)
        self.applier = PlanApplier(deck, self.moves)
        self.buyer = Provisioner(deck, self.moves)
        self.ender = Terminator(deck, self.moves)
        self.marker = CordonDrainer(deck, self.moves)
        self.healer = Remediator(deck)
        self.witness = SecondWitness(deck)
        self.outfitting = NodeBootstrapper(deck, self.moves)
        self.teller = IncidentRecorder(deck, self.moves)
        self.reports = AgentReports(deck, self.moves, self.teller)
        self.errands = EffectRunner(deck.clock, deck.rng, self._wake)
        self._alarm: asyncio.TimerHandle | None = None

    async def tick(self) -> None:
        now, clock = self.deck.clock.now(), self.deck.clock
        noted, began = self.deck.journal.version, clock.monotonic()
        wakes = [self._turn(spec, now) for spec in self.deck.specs.values()]
        took = clock.monotonic() - began
        await self.deck.journal.wait_durable()
        await fault_point("navarch.tick.decided")
        self._effects()
        if self.deck.journal.version != noted:
            # What changed may call for more.
            self.deck.wake()
        self._wake_at(min((at for at in wakes if at is not None), default=None), now)
        if took > _LONG_S:
            # Where thousands of nodes are in trouble, their agents must still be heard.
            await clock.sleep(Duration.of(seconds=min(_REST_S_MAX, took)))

    def plan(self, spec: PoolSpec) -> PoolPlan:
        """The pool's plan at this moment, which is not applied."""
        return plan(self.deck.book.view(spec, self.deck.started), self.deck.clock.now())

    def _turn(self, spec: PoolSpec, now: Instant) -> Instant | None:
        decided = plan(self.deck.book.view(spec, self.deck.started), now)
        shelf = self.deck.book.shelf(spec.name)
        shelf.holds = decided.holds
        if decided.wish is not None and (not shelf.wishes or shelf.wishes[-1].size != decided.wish.size):
            shelf.wishes.append(decided.wish)
        elif decided.wish is not None:
            shelf.wishes[-1] = decided.wish
        for action in decided.actions:
            if isinstance(action, ReportSilence):
                work = partial(self.reports.silence, action.node, action.since)
                self.errands.ensure(f"silence {action.node}", work)
            else:
                self.applier.apply(action)
        self.teller.holds(spec.name, decided.holds)
        return decided.wake_at

    def _effects(self) -> None:
        """Level-triggered: whatever the records call for and is not under way is begun."""
        book, ensure = self.deck.book, self.errands.ensure
        for purchase in book.purchases.values():
            if purchase.state is PurchaseState.INTENDED:
                ensure(f"buy {purchase.id}", partial(self.buyer.buy, purchase.id))
        for name in list(book.touched):
            node = book.nodes.get(name)
            if node is not None:
                self._start_node_effects(node)
            if node is None or (node.state is NodeState.ACTIVE and not self.marker.due(node)):
                # At work and known for it, as almost all of them are.
                del book.touched[name]
        for repair in book.open_repairs.values():
            if self.witness.due(repair):
                ensure(f"witness {repair.id}", partial(self.witness.ask, repair.id))
            if self.healer.due(repair):
                ensure(f"treat {repair.id}", partial(self.healer.reboot, repair.id))
            elif self.healer.agent_unreachable(repair):
                why = "its cloud cannot, and its agent is not heard"
                self.healer.refused(repair.node, repair.id, why)

    def _start_node_effects(self, node: Node) -> None:
        ensure = self.errands.ensure
        if self.outfitting.due(node):
            ensure(f"set up {node.id}", partial(self.outfitting.outfit, node.id), long=True)
        if self.marker.due(node):
            ensure(f"mark {node.id}", partial(self.marker.mark, node.id))
        if node.state is NodeState.TERMINATING:
            ensure(f"end {node.id}", partial(self.ender.end, node.id))
        elif node.state is NodeState.DRAINING:
            ensure(f"drain {node.id}", partial(self.marker.drain, node.id))

    def _wake(self) -> None:
        self.deck.wake()

    def _wake_at(self, at: Instant | None, now: Instant) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if at is not None:
            self._alarm = asyncio.get_running_loop().call_later(at.since(now).seconds, self.deck.wake)
