"""The service for agents."""

from neorion.keel.base import Duration
from neorion.navarch.act.reports import Registration
from neorion.navarch.act.tick import Fleet
from neorion.navarch.model import RepairId, wire
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.gen.navarch_connect import AgentService
from neorion.navarch.ports import Gpu
from neorion.navarch.serve.keys import Keys, check_speaks_for, speaking_node


class Agents(AgentService):
    """AgentService over one fleet."""

    def __init__(self, fleet: Fleet, keys: Keys, health_check: Duration) -> None:
        self._fleet = fleet
        self._keys = keys
        self._health_check = health_check

    async def register(self, request: pb.RegisterRequest, ctx: object) -> pb.RegisterResponse:
        said = Registration(
            wire.claim(request), request.pool, len(request.gpus), request.instance_type, request.kube_name
        )
        found = self._fleet.reports.find(said)
        if found is not None:
            check_speaks_for(found.id)
        node = await self._fleet.reports.register(said)
        timing = self._fleet.deck.spec(node.pool).timing
        return pb.RegisterResponse(
            node=node.id,
            token=self._keys.token_of(node.id),
            heartbeat_interval_ms=round(timing.heartbeat.ms),
            health_check_interval_ms=round(self._health_check.ms),
            expected_gpus=node.gpus,
        )

    async def heartbeat(self, request: pb.HeartbeatRequest, ctx: object) -> pb.HeartbeatResponse:
        node_id = speaking_node()
        gpus = [_gpu(one) for one in request.gpus[: wire.GPUS_MAX]]
        tested = request.tested if request.has_field("tested") else None
        node = self._fleet.reports.heartbeat(node_id, gpus, tested=tested)
        open_repair = self._fleet.deck.book.open_repairs.get(node_id)
        if open_repair is not None and open_repair.id in request.done:
            self._fleet.healer.treated(node_id, RepairId(open_repair.id))
            return pb.HeartbeatResponse(state=node.state.value)
        order = self._fleet.healer.order(node_id)
        gpu = node.ailment.gpu if node.ailment else -1
        orders = [pb.Order(id=order.id, remedy=order.remedy.value, gpu=gpu)] if order is not None else []
        return pb.HeartbeatResponse(state=node.state.value, orders=orders)

    async def report(self, request: pb.ReportRequest, ctx: object) -> pb.ReportResponse:
        node_id = speaking_node()
        events = wire.events(request.events, self._fleet.deck.clock.now())
        self._fleet.deck.node(node_id)
        await self._fleet.reports.report(node_id, request.boot[:100], request.batch, events)
        node = self._fleet.deck.book.nodes.get(node_id)
        return pb.ReportResponse(state=node.state.value if node else "terminated")


def _gpu(message: pb.Gpu) -> Gpu:
    return Gpu(
        index=message.index,
        uuid=message.uuid[:100],
        model=message.model[:100],
        temperature=message.temperature_celsius,
        power=message.power_watts,
        utilisation=min(100.0, max(0.0, message.utilisation_percent)),
        memory_used=message.memory_used_bytes,
    )
