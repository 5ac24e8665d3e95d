"""Reboots that a cloud carries out. Everything else that is done to a machine is done by its agent, on its next heartbeat."""

from msgspec.structs import replace

from neorion.capacity.gpu import Remedy
from neorion.capacity.provider import Capability
from neorion.keel.clock import fault_point
from neorion.navarch.controllers.context import FleetContext
from neorion.navarch.model import EventKind, NodeHeartbeat, NodeId, Repair, RepairId, RepairStep


class Remediator:
    """Asks clouds for reboots, and notes what agents have done."""

    def __init__(self, context: FleetContext) -> None:
        self._context = context
        self._state = context.state
        # Reboots that were asked for, while the machine's next kernel has not been heard of.
        self._asked: dict[NodeId, RepairId] = {}

    def uses_cloud_reboot(self, repair: Repair) -> bool:
        node = self._state.nodes.get(repair.node)
        if node is None or repair.remedy is not Remedy.REBOOT or repair.step is not RepairStep.TREATING:
            return False
        provider = self._context.backends.providers.get(node.place.provider)
        return provider is not None and Capability.REBOOT in provider.capabilities and bool(node.machine)

    def due(self, repair: Repair) -> bool:
        """Reports whether the cloud must still be asked for the reboot."""
        return self.uses_cloud_reboot(repair) and self._asked.get(repair.node) != repair.id

    def order(self, node: NodeId) -> Repair | None:
        """The repair that the node's agent is to carry out now."""
        repair = self._state.open_repairs.get(node)
        if repair is None or repair.step is not RepairStep.TREATING:
            return None
        return None if self.uses_cloud_reboot(repair) else repair

    def agent_unreachable(self, repair: Repair) -> bool:
        """Reports whether the treatment needs the node's agent, and that agent is silent."""
        node = self._state.nodes.get(repair.node)
        if node is None or repair.step is not RepairStep.TREATING or self.uses_cloud_reboot(repair):
            return False
        silent = node.ailment is not None and node.ailment.signature == EventKind.SILENCE
        return silent and repair.id not in self._state.heartbeats.get(node.id, NodeHeartbeat()).refused

    async def reboot(self, repair_id: RepairId) -> None:
        repair = self._state.repairs.get(repair_id)
        if repair is None or not self.due(repair):
            return
        node = self._state.nodes[repair.node]
        await self._context.journal.wait_durable()
        await fault_point("navarch.treat.before")
        await self._context.backends.providers[node.place.provider].reboot(node.machine)
        if node.kernel_boot:
            # It may serve again when it comes back, not while it has not gone down yet.
            self._asked[node.id] = repair_id
        else:
            self.treated(repair.node, repair_id)

    def forget_gone(self) -> None:
        for node in [one for one in self._asked if one not in self._state.open_repairs]:
            del self._asked[node]

    def treated(self, node: NodeId, repair: RepairId) -> None:
        heartbeat = self._state.heartbeats.get(node, NodeHeartbeat())
        # What was heard before is no sign of life after; the test before says nothing either.
        heard = self._context.clock.now()
        self._state.record_heartbeat(
            node, replace(heartbeat, treated=heartbeat.treated | {str(repair)}, heard=heard, tested=None)
        )
        self._context.wake()

    def rebooted(self, node: NodeId) -> None:
        """The machine came back with another kernel: if that is what it was to do, it is done."""
        repair = self._state.open_repairs.get(node)
        if repair is not None and repair.step is RepairStep.TREATING and repair.remedy is Remedy.REBOOT:
            self.treated(node, repair.id)

    def refused(self, node: NodeId, repair: RepairId, why: str) -> None:
        heartbeat = self._state.heartbeats.get(node, NodeHeartbeat())
        self._state.heartbeats[node] = replace(heartbeat, refused={**heartbeat.refused, str(repair): why})
        self._context.wake()
