"""The only place that gives machines back."""

from neorion.capacity.provider import MachineState
from neorion.keel.base import Duration, NotFound, Retry
from neorion.keel.clock import fault_point
from neorion.navarch.controllers.context import FleetContext
from neorion.navarch.controllers.state_writer import StateWriter
from neorion.navarch.model import Node, NodeId, NodeState, Origin

# Clouds take seconds to minutes to stop a machine; it is asked again until it is gone.
_ASK_AGAIN = Duration.of(seconds=5)


class Terminator:
    """Terminates machines, again and again until each is gone."""

    def __init__(self, context: FleetContext, writer: StateWriter) -> None:
        self._context = context
        self._state = context.state
        self._writer = writer

    async def end(self, node_id: NodeId) -> None:
        node = self._state.nodes.get(node_id)
        if node is None or node.state is not NodeState.TERMINATING:
            return
        await self._context.journal.wait_durable()
        await fault_point("navarch.end.before")
        if not await self._gone(node):
            raise Retry("navarch.ending", f"{node.machine} is still stopping.", after=_ASK_AGAIN)
        await fault_point("navarch.end.after")
        # Before the record is removed, so that this is repeated after a crash.
        await self._context.backends.scheduler.forget(node)
        newest = self._state.nodes.get(node_id)
        if newest is not None and newest.state is NodeState.TERMINATING:
            self._writer.transition_node(
                newest, NodeState.TERMINATED, f"{node.machine or 'its machine'} is gone"
            )

    async def _gone(self, node: Node) -> bool:
        if not node.machine or (node.origin is Origin.JOINED and not node.place.provider):
            return True
        provider = self._context.backends.providers[node.place.provider]
        try:
            await provider.terminate(node.machine)
            return (await provider.describe(node.machine)).state is MachineState.GONE
        except NotFound:
            return True
