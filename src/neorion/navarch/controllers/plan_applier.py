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

    def __init__(self, deck: FleetContext, moves: StateWriter) -> None:
        self._deck = deck
        self._book = deck.book
        self._moves = moves

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
                if (repair := self._book.repairs.get(action.repair)) is not None:
                    self._moves.assign_replacement(repair, action.node, action.why)
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
        node = self._book.nodes.get(action.node)
        if node is None:
            return
        match action:
            case MoveNode():
                self._moves.node(node, action.to, action.why)
            case FailNode():
                self._moves.trouble(node.pool, "boot", action.why)
                self._moves.node(node, NodeState.TERMINATING, action.why)
            case RetireNode():
                self._retire(node, action.why)
            case ClearAilment():
                self._moves.change(recovered(node))
                self._moves.tell(node.id, "node.recovered", action.why)

    def _open(self, action: OpenRepair) -> None:
        node = self._book.nodes.get(action.node)
        if node is None or self._book.open_repairs.get(action.node) is not None:
            return
        now = self._deck.clock.now()
        repair = Repair(
            id=self._deck.ids.new(RepairId),
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
        self._book.put_repair(repair)
        self._moves.tell(
            node.id, "repair.waiting", f"needs {action.remedy.value}: {action.why}", repair=repair.id
        )
        self._deck.watch(repair)
        self._deck.wake()

    def _step(self, action: AdvanceRepair) -> None:
        repair = self._book.repairs.get(action.repair)
        if repair is None:
            return
        if action.to in (RepairStep.BUYING, RepairStep.DRAINING) and not action.swap:
            repair = replace(repair, swap=False)
        self._moves.step(repair, action.to, action.why)

    def _retire(self, node: Node, why: str) -> None:
        if node.state.open or node.state is NodeState.CORDONED:
            marked = replace(node, retiring=True, why=why)
            self._moves.change(marked)
            if node.state.open:
                self._moves.node(marked, NodeState.CORDONED, why)
        else:
            self._moves.node(node, NodeState.TERMINATING, why)

    def _want(self, action: SetDesiredSize) -> None:
        state = self._book.shelf(action.pool).state
        now = self._deck.clock.now()
        first = state.wanted < 0
        self._book.put_pool(
            replace(
                state,
                wanted=action.size,
                wanted_by=action.by,
                # The first size is no change: nothing has to cool down after it.
                scaled=state.scaled if first else now,
                scaled_up=now if action.size > state.wanted and not first else state.scaled_up,
            )
        )
        self._book.tell(f"pool/{action.pool}", now, HistoryEntry("pool.wants", action.sentence))

    def _buy(self, action: ProvisionNode) -> None:
        """The intent: when it is durable, a machine of this name may be bought, and never another for it."""
        repair = self._book.repairs.get(action.repair) if action.repair else None
        if action.repair and (repair is None or repair.successor or repair.step is not RepairStep.BUYING):
            return
        now, node_id = self._deck.clock.now(), self._deck.ids.new(NodeId)
        purchase = Purchase(self._deck.ids.new(IntentId), node_id, action.pool, action.place, now)
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
        self._book.put_purchase(purchase)
        self._book.put_node(node)
        self._count(action, repair)
        if repair is not None:
            self._moves.assign_replacement(repair, node_id, "a new machine is bought")
        self._moves.tell(node_id, "node.ordered", action.sentence, pool=action.pool)
        self._deck.watch(node)
        self._deck.wake()

    def _count(self, action: ProvisionNode, repair: Repair | None) -> None:
        """Turns are taken by purchases; and in the place of what others bought the pool gets one of its own."""
        state = self._book.shelf(action.pool).state
        old = self._book.nodes.get(repair.node) if repair is not None else None
        more = old is not None and old.origin is Origin.JOINED
        turn = self._deck.specs[action.pool].strategy is Strategy.ROUND_ROBIN
        if more or turn:
            self._book.put_pool(replace(state, wanted=max(0, state.wanted) + more, turn=state.turn + turn))
