"""The second witness of a silent agent: the scheduler and the cloud are asked about its machine."""

from typing import Final

from msgspec.structs import replace

from neorion.capacity.provider import MachineState
from neorion.keel.base import Error, NotFound, Retry
from neorion.keel.telemetry import logger
from neorion.navarch.controllers.context import FleetContext
from neorion.navarch.model import EventKind, Node, NodeHeartbeat, Repair, RepairId, RepairStep

log = logger(__name__)

_DOWN: Final = (MachineState.STOPPING, MachineState.GONE)


class SecondWitness:
    """Asks again at the interval of heartbeats, for as long as the repair of a silent node waits."""

    def __init__(self, context: FleetContext) -> None:
        self._context = context
        self._state = context.state

    def due(self, repair: Repair) -> bool:
        waits = repair.step is RepairStep.WAITING and not repair.approved
        return waits and repair.signature == EventKind.SILENCE and repair.node in self._state.nodes

    async def ask(self, repair_id: RepairId) -> None:
        repair = self._state.repairs.get(repair_id)
        if repair is None or not self.due(repair):
            return
        node = self._state.nodes[repair.node]
        interval = self._context.spec(node.pool).timing.heartbeat
        # Agents that lose the control plane together fall silent within an interval of each other.
        early = interval * 2 - self._context.clock.now().since(repair.opened)
        if early:
            raise Retry("navarch.early", f"{node.id} fell silent a moment ago.", after=early)
        self._note(node, await self._machine_up(node))
        raise Retry("navarch.silent", f"{node.id} is silent.", after=interval)

    async def _machine_up(self, node: Node) -> bool | None:
        """One witness who says that the machine is down is enough. A running instance may have a dead kernel."""
        if await self._is_stopped(node):
            return False
        try:
            return await self._context.backends.scheduler.machine_up(node)
        except Error as error:
            log.info("the scheduler says nothing of a machine", node=node.id, why=error.sentence)
            return None

    async def _is_stopped(self, node: Node) -> bool:
        provider = self._context.backends.providers.get(node.place.provider)
        if provider is None or not node.machine:
            return False
        try:
            return (await provider.describe(node.machine)).state in _DOWN
        except NotFound:
            return True
        except Error as error:
            log.info("a cloud says nothing of a machine", node=node.id, why=error.sentence)
            return False

    def _note(self, node: Node, up: bool | None) -> None:  # noqa: FBT001 -- what a witness says
        heartbeat = self._state.heartbeats.get(node.id, NodeHeartbeat())
        if node.id in self._state.nodes and heartbeat.machine_up is not up:
            self._state.heartbeats[node.id] = replace(heartbeat, machine_up=up)
            self._context.wake()
