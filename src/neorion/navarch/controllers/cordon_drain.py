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
    """Keeps the scheduler's marks of each node as the fleet's state has them. After a start all are written again."""

    def __init__(self, context: FleetContext, writer: StateWriter) -> None:
        self._context = context
        self._state = context.state
        self._writer = writer
        # Each node as it was when last told of.
        self._marked: dict[NodeId, Node] = {}

    def due(self, node: Node) -> bool:
        """Reports whether the scheduler's marks of a node are out of date."""
        told = self._marked.get(node.id)
        return told is not node and node.state in _TOLD_IN and (told is None or not _alike(told, node))

    async def mark(self, node_id: NodeId) -> None:
        node = self._state.nodes.get(node_id)
        if node is None or not self.due(node):
            return
        await self._context.journal.wait_durable()
        await fault_point("navarch.mark.before")
        # Until this call returns, the scheduler's marks are unknown.
        self._marked.pop(node_id, None)
        try:
            if node.state.open:
                await self._uncordon(node)
            else:
                await self._context.backends.scheduler.cordon(node, node.why)
                self._marked[node_id] = node
                self._note(node_id, marked=True)
        except Error as error:
            self._note(node_id, waits=error.sentence)
            raise

    async def _uncordon(self, node: Node) -> None:
        """The node counts as active only when the scheduler was seen to place work on it."""
        status = await self._context.backends.scheduler.uncordon(node)
        self._note(node.id, marked=False)
        newest = self._state.nodes.get(node.id)
        if newest is None or not newest.state.open:
            return
        if not status.schedulable:
            why = f"the scheduler places no work on it: {status.sentence}"
            if newest.state is NodeState.ACTIVE:
                self._writer.transition_node(newest, NodeState.UNCORDONING, why)
            raise Retry("navarch.not_schedulable", f"{why}.", after=_ASK_AGAIN)
        if newest.state is NodeState.UNCORDONING:
            self._writer.transition_node(newest, NodeState.ACTIVE, newest.why)
        self._marked[node.id] = replace(node, state=NodeState.ACTIVE)

    async def drain(self, node_id: NodeId) -> None:
        node = self._state.nodes.get(node_id)
        if node is None or node.state is not NodeState.DRAINING:
            return
        await self._context.journal.wait_durable()
        await fault_point("navarch.drain.before")
        patience = self._context.spec(node.pool).timing.drain
        left = patience - self._context.clock.now().since(node.since)
        try:
            drain = await self._context.backends.scheduler.drain(node, node.why, left)
        except Error as error:
            self._note(node_id, marked=True, waits=error.sentence)
            raise
        newest = self._state.nodes.get(node_id)
        if newest is None or newest.state is not NodeState.DRAINING:
            return
        if not drain.done:
            waits = drain.sentence or f"{drain.left} left."
            self._note(node_id, marked=True, waits=waits)
            raise Retry("navarch.draining", waits, after=_ASK_AGAIN)
        self._note(node_id, marked=True)
        self._writer.transition_node(newest, NodeState.DRAINED, drain.sentence or "nothing runs on it")

    def forget_gone(self) -> None:
        for node in [one for one in self._marked if one not in self._state.nodes]:
            del self._marked[node]

    def _note(self, node_id: NodeId, *, marked: bool | None = None, waits: str = "") -> None:
        """Records the marks and the wait of a node that still exists. `marked=None` leaves the marks as they are."""
        if node_id not in self._state.nodes:
            return
        heartbeat = self._state.heartbeats.get(node_id, NodeHeartbeat())
        self._state.heartbeats[node_id] = replace(
            heartbeat, marked=heartbeat.marked if marked is None else marked, waits=waits
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
