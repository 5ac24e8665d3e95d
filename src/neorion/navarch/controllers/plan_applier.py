"""Carries out what was decided, one action after the other, each checked against the newest record."""

from msgspec.structs import replace

from neorion.capacity.gpu import shape_of
from neorion.capacity.provider import IntentId
from neorion.keel.table import IllegalTransition
from neorion.keel.telemetry import logger
from neorion.navarch.controllers.context import FleetContext
from neorion.navarch.controllers.state_writer import StateWriter
from neorion.navarch.decide import (
    Action,
    AdvanceRepair,
    AssignReplacement,
    ClearAilment,
    FailNode,
    MoveNode,
    OpenRepair,
    ProvisionNode,
    ReportSilence,
    RetireNode,
    SetDesiredSize,
    recovered,
)
from neorion.navarch.model import Node, NodeId, NodeState, Origin, Purchase, Repair, RepairId, RepairStep
from neorion.navarch.model.spec import Strategy
from neorion.navarch.state import HistoryEntry

log = logger(__name__)


class PlanApplier:
    """Turns actions into records. What has an effect outside is read off the records by `effects`, when they are durable."""

    def __init__(self, context: FleetContext, writer: StateWriter) -> None:
        self._context = context
        self._state = context.state
        self._writer = writer

    def apply(self, action: Action) -> None:
        try:
            self._apply(action)
        except IllegalTransition as error:
            # The state has changed since the snapshot. The next tick decides again.
            log.warning("action came too late", action=action.sentence, why=error.sentence)

    def _apply(self, action: Action) -> None:
        match action:
            case OpenRepair():
                self._open(action)
            case AdvanceRepair():
                self._step(action)
            case AssignReplacement():
                if (repair := self._state.repairs.get(action.repair)) is not None:
                    self._writer.assign_replacement(repair, action.node, action.why)
            case ProvisionNode():
                self._buy(action)
            case SetDesiredSize():
                self._want(action)
            case ReportSilence():
                # Judged like every other event, by `reports`.
                pass
            case _:
                self._change_node(action)

    def _change_node(self, action: MoveNode | FailNode | RetireNode | ClearAilment) -> None:
        node = self._state.nodes.get(action.node)
        if node is None:
            return
        match action:
            case MoveNode():
                self._writer.transition_node(node, action.to, action.why)
            case FailNode():
                self._writer.record_failure(node.pool, "boot", action.why)
                self._writer.transition_node(node, NodeState.TERMINATING, action.why)
            case RetireNode():
                self._retire(node, action.why)
            case ClearAilment():
                self._writer.update_node(recovered(node))
                self._writer.record_event(node.id, "node.recovered", action.why)

    def _open(self, action: OpenRepair) -> None:
        node = self._state.nodes.get(action.node)
        if node is None or self._state.open_repairs.get(action.node) is not None:
            return
        now = self._context.clock.now()
        repair = Repair(
            id=self._context.ids.new(RepairId),
            node=node.id,
            pool=node.pool,
            remedy=action.remedy,
            signature=action.signature,
            why=action.why,
            opened=now,
            since=now,
            host=node.host,
            times={RepairStep.WAITING.value: now},
        )
        self._state.put_repair(repair)
        self._writer.record_event(
            node.id, "repair.waiting", f"needs {action.remedy.value}: {action.why}", repair=repair.id
        )
        self._context.watch(repair)
        self._context.wake()

    def _step(self, action: AdvanceRepair) -> None:
        repair = self._state.repairs.get(action.repair)
        if repair is None:
            return
        if action.to in (RepairStep.BUYING, RepairStep.DRAINING) and not action.swap:
            repair = replace(repair, swap=False)
        self._writer.transition_repair(repair, action.to, action.why)

    def _retire(self, node: Node, why: str) -> None:
        if node.state.open or node.state is NodeState.CORDONED:
            marked = replace(node, retiring=True, why=why)
            self._writer.update_node(marked)
            if node.state.open:
                self._writer.transition_node(marked, NodeState.CORDONED, why)
        else:
            self._writer.transition_node(node, NodeState.TERMINATING, why)

    def _want(self, action: SetDesiredSize) -> None:
        state = self._state.pool(action.pool).state
        now = self._context.clock.now()
        first = state.wanted < 0
        self._state.put_pool(
            replace(
                state,
                wanted=action.size,
                wanted_by=action.by,
                # The first size is no change: nothing has to cool down after it.
                scaled=state.scaled if first else now,
                scaled_up=now if action.size > state.wanted and not first else state.scaled_up,
            )
        )
        self._state.append_history(f"pool/{action.pool}", now, HistoryEntry("pool.wants", action.sentence))

    def _buy(self, action: ProvisionNode) -> None:
        """The intent: when it is durable, a machine of this name may be bought, and never another for it."""
        repair = self._state.repairs.get(action.repair) if action.repair else None
        if action.repair and (repair is None or repair.successor or repair.step is not RepairStep.BUYING):
            return
        now, node_id = self._context.clock.now(), self._context.ids.new(NodeId)
        purchase = Purchase(self._context.ids.new(IntentId), node_id, action.pool, action.place, now)
        shape = shape_of(action.place.instance_type)
        node = Node(
            id=node_id,
            pool=action.pool,
            place=action.place,
            born=now,
            since=now,
            why=action.why,
            purchase=purchase.id,
            gpus=shape.gpus if shape else 0,
            spare=action.spare,
        )
        self._state.put_purchase(purchase)
        self._state.put_node(node)
        self._count(action, repair)
        if repair is not None:
            self._writer.assign_replacement(repair, node_id, "a new machine is bought")
        self._writer.record_event(node_id, "node.ordered", action.sentence, pool=action.pool)
        self._context.watch(node)
        self._context.wake()

    def _count(self, action: ProvisionNode, repair: Repair | None) -> None:
        """Turns are taken by purchases; and in the place of what others bought the pool gets one of its own."""
        state = self._state.pool(action.pool).state
        old = self._state.nodes.get(repair.node) if repair is not None else None
        more = old is not None and old.origin is Origin.JOINED
        turn = self._context.specs[action.pool].strategy is Strategy.ROUND_ROBIN
        if more or turn:
            self._state.put_pool(replace(state, wanted=max(0, state.wanted) + more, turn=state.turn + turn))
