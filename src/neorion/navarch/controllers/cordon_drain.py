"""The only place that tells the scheduler which nodes take work, and that asks work to leave."""

from msgspec.structs import replace

from neorion.keel.base import Duration, Error, Retry
from neorion.keel.clock import fault_point
from neorion.navarch.controllers.context import FleetContext
from neorion.navarch.controllers.state_writer import StateWriter
from neorion.navarch.model import Node, NodeHeartbeat, NodeId, NodeState

# Pods take seconds to leave, and nodes seconds to join; asking more often only costs.
_ASK_AGAIN = Duration.of(seconds=2)
_TOLD_IN = (
    NodeState.VERIFYING,
    NodeState.SPARE,
    NodeState.UNCORDONING,
    NodeState.ACTIVE,
    NodeState.CORDONED,
    NodeState.DRAINING,
    NodeState.DRAINED,
)


class CordonDrainer:
    """Keeps the scheduler's picture of each node as the book has it. After a start everything is told once more."""

    def __init__(self, deck: FleetContext, moves: StateWriter) -> None:
        self._deck = deck
        self._book = deck.book
        self._moves = moves
        # Each node as it was when last told of.
        self._told: dict[NodeId, Node] = {}

    def due(self, node: Node) -> bool:
        """Reports whether the scheduler's marks of a node are out of date."""
        told = self._told.get(node.id)
        return told is not node and node.state in _TOLD_IN and (told is None or not _alike(told, node))

    async def mark(self, node_id: NodeId) -> None:
        node = self._book.nodes.get(node_id)
        if node is None or not self.due(node):
            return
        await self._deck.journal.wait_durable()
        await fault_point("navarch.mark.before")
        # Until this call returns, the scheduler's marks are unknown.
        self._told.pop(node_id, None)
        try:
            if node.state.open:
                await self._uncordon(node)
            else:
                await self._deck.world.scheduler.cordon(node, node.why)
                self._told[node_id] = node
                self._note(node_id, marked=True)
        except Error as error:
            self._note(node_id, waits=error.sentence)
            raise

    async def _uncordon(self, node: Node) -> None:
        """The node counts as active only when the scheduler was seen to place work on it."""
        status = await self._deck.world.scheduler.uncordon(node)
        self._note(node.id, marked=False)
        newest = self._book.nodes.get(node.id)
        if newest is None or not newest.state.open:
            return
        if not status.schedulable:
            why = f"the scheduler places no work on it: {status.sentence}"
            if newest.state is NodeState.ACTIVE:
                self._moves.node(newest, NodeState.UNCORDONING, why)
            raise Retry("navarch.not_schedulable", f"{why}.", after=_ASK_AGAIN)
        if newest.state is NodeState.UNCORDONING:
            self._moves.node(newest, NodeState.ACTIVE, newest.why)
        self._told[node.id] = replace(node, state=NodeState.ACTIVE)

    async def drain(self, node_id: NodeId) -> None:
        node = self._book.nodes.get(node_id)
        if node is None or node.state is not NodeState.DRAINING:
            return
        await self._deck.journal.wait_durable()
        await fault_point("navarch.drain.before")
        patience = self._deck.spec(node.pool).timing.drain
        left = patience - self._deck.clock.now().since(node.since)
        try:
            drain = await self._deck.world.scheduler.drain(node, node.why, left)
        except Error as error:
            self._note(node_id, marked=True, waits=error.sentence)
            raise
        newest = self._book.nodes.get(node_id)
        if newest is None or newest.state is not NodeState.DRAINING:
            return
        if not drain.done:
            waits = drain.sentence or f"{drain.left} left."
            self._note(node_id, marked=True, waits=waits)
            raise Retry("navarch.draining", waits, after=_ASK_AGAIN)
        self._note(node_id, marked=True)
        self._moves.node(newest, NodeState.DRAINED, drain.sentence or "nothing runs on it")

    def forget_gone(self) -> None:
        for node in [one for one in self._told if one not in self._book.nodes]:
            del self._told[node]

    def _note(self, node_id: NodeId, *, marked: bool | None = None, waits: str = "") -> None:
        """Records the marks and the wait of a node that still exists. `marked=None` leaves the marks as they are."""
        if node_id not in self._book.nodes:
            return
        pulse = self._book.pulses.get(node_id, NodeHeartbeat())
        self._book.pulses[node_id] = replace(
            pulse, marked=pulse.marked if marked is None else marked, waits=waits
        )


def _alike(told: Node, node: Node) -> bool:
    """Reports whether two records of a node have the same marks in a scheduler."""
    return (
        told.state is node.state
        and told.health is node.health
        and told.ailment == node.ailment
        and told.kube_name == node.kube_name
        and told.agent == node.agent
    )
