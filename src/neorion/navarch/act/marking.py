"""The only place that tells the scheduler which nodes take work, and that asks work to leave."""

from msgspec.structs import replace

from neorion.keel.base import Duration, Retry
from neorion.keel.clock import point
from neorion.navarch.act.deck import Deck
from neorion.navarch.act.moves import Moves
from neorion.navarch.model import Node, NodeId, NodeState, Pulse

# Pods take seconds to go; asking more often only costs.
_ASK_AGAIN = Duration.of(seconds=2)
_AWAY = (
    NodeState.VERIFYING,
    NodeState.SPARE,
    NodeState.CORDONED,
    NodeState.DRAINING,
    NodeState.DRAINED,
)


class Marker:
    """Keeps the scheduler's picture of each node as the book has it. After a start everything is told once more."""

    def __init__(self, deck: Deck, moves: Moves) -> None:
        self._deck = deck
        self._book = deck.book
        self._moves = moves
        self._told: dict[NodeId, bool] = {}

    def due(self, node: Node) -> bool:
        """Whether the scheduler believes something else."""
        if node.state is NodeState.ACTIVE:
            return self._told.get(node.id) is not False
        return node.state in _AWAY and self._told.get(node.id) is not True

    async def mark(self, node_id: NodeId) -> None:
        node = self._book.nodes.get(node_id)
        if node is None or not self.due(node):
            return
        await self._deck.journal.durable()
        away = node.state is not NodeState.ACTIVE
        await point("navarch.mark.before")
        if away:
            await self._deck.world.scheduler.cordon(node, node.why)
        else:
            await self._deck.world.scheduler.uncordon(node)
        self._told[node_id] = away
        self._book.pulses[node_id] = replace(self._book.pulses.get(node_id, Pulse()), marked=away)

    async def drain(self, node_id: NodeId) -> None:
        node = self._book.nodes.get(node_id)
        if node is None or node.state is not NodeState.DRAINING:
            return
        await self._deck.journal.durable()
        await point("navarch.drain.before")
        patience = self._deck.spec(node.pool).timing.drain
        left = patience - self._deck.clock.now().since(node.since)
        drain = await self._deck.world.scheduler.drain(node, node.why, left)
        newest = self._book.nodes.get(node_id)
        if newest is None or newest.state is not NodeState.DRAINING:
            return
        if not drain.done:
            raise Retry("navarch.draining", drain.sentence or f"{drain.left} left.", after=_ASK_AGAIN)
        self._moves.node(newest, NodeState.DRAINED, drain.sentence or "nothing runs on it")

    def forget_gone(self) -> None:
        for node in [one for one in self._told if one not in self._book.nodes]:
            del self._told[node]
