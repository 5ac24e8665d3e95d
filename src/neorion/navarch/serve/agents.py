"""The service for agents."""

from dataclasses import replace
from typing import Final

from neorion.keel.base import Duration, Retry
from neorion.navarch.controllers.agent_reports import Registration
from neorion.navarch.controllers.fleet_controller import FleetController
from neorion.navarch.model import Node, RepairStep, wire
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.gen.navarch_connect import AgentService
from neorion.navarch.ports import Gpu
from neorion.navarch.serve.authentication import (
    TOKEN_LIFE,
    NodeTokenAuthenticator,
    calling_node,
    check_is_node,
    secret_digest,
)
from neorion.navarch.serve.rate_limit import RateLimiter

# Events of one node: so many at once, and so many a second in the long run. A storm of a whole machine is less.
EVENTS_AT_ONCE: Final = 2_000
EVENTS_PER_S: Final = 10.0
# More than one order at a time is not given.
REFUSALS_MAX: Final = 16


class AgentEndpoint(AgentService):
    """AgentService over one fleet."""

    def __init__(self, fleet: FleetController, keys: NodeTokenAuthenticator, health_check: Duration) -> None:
        self._fleet = fleet
        self._keys = keys
        self._health_check = health_check
        self._rates = RateLimiter(EVENTS_AT_ONCE, EVENTS_PER_S, fleet.context.clock)

    async def register(self, request: pb.RegisterRequest, ctx: object) -> pb.RegisterResponse:
        said = Registration(
            wire.claim(request),
            request.pool,
            len(request.gpus),
            request.instance_type,
            request.kube_name,
            request.kernel_boot,
            secret_digest(request.secret),
        )
        found = self._fleet.reports.find(said)
        said = replace(said, proven=check_is_node(found.id if found is not None else None))
        node = await self._fleet.reports.register(said)
        if found is not None and found.kernel_boot not in ("", node.kernel_boot):
            self._fleet.remediator.rebooted(node.id)
        timing = self._fleet.context.spec(node.pool).timing
        return pb.RegisterResponse(
            node=node.id,
            token=self._keys.token_of(node.id),
            heartbeat_interval_ms=round(timing.heartbeat.ms),
            health_check_interval_ms=round(self._health_check.ms),
            expected_gpus=node.gpus,
            token_life_ms=round(TOKEN_LIFE.ms),
        )

    async def heartbeat(self, request: pb.HeartbeatRequest, ctx: object) -> pb.HeartbeatResponse:
        node_id = calling_node()
        gpus = [_gpu(one) for one in request.gpus[: wire.GPUS_MAX]]
        tested = request.tested if request.has_field("tested") else None
        node = self._fleet.reports.heartbeat(node_id, gpus, tested=tested)
        answer = pb.HeartbeatResponse(state=node.state.value, orders=self._orders(node, request))
        if request.renew:
            answer.token = self._keys.token_of(node_id)
            answer.token_life_ms = round(TOKEN_LIFE.ms)
        return answer

    def _orders(self, node: Node, request: pb.HeartbeatRequest) -> list[pb.Order]:
        """Treatments that the node must carry out, after applying its results of earlier ones."""
        repair, remediator = self._fleet.context.state.open_repairs.get(node.id), self._fleet.remediator
        if repair is None or repair.step is not RepairStep.TREATING:
            return []
        if repair.id in request.done:
            remediator.treated(node.id, repair.id)
            return []
        for one in request.refused[:REFUSALS_MAX]:
            if one.id == repair.id:
                remediator.refused(node.id, repair.id, one.sentence[: wire.TEXT_MAX])
                return []
        if remediator.order(node.id) is None:
            return []
        gpu = node.ailment.gpu if node.ailment else -1
        return [pb.Order(id=repair.id, remedy=repair.remedy.value, gpu=gpu)]

    async def report(self, request: pb.ReportRequest, ctx: object) -> pb.ReportResponse:
        node_id = calling_node()
        events = wire.events(request.events, request.sent_ms, self._fleet.context.clock.now())
        self._fleet.context.node(node_id)
        # An empty report costs as much as one event.
        wait = self._rates.take(node_id, max(1, len(events)))
        if wait:
            raise Retry(
                "navarch.event_rate",
                f"{node_id} reports more than {EVENTS_PER_S:g} events a second.",
                hint="Wait before the next report.",
                after=wait,
            )
        await self._fleet.reports.report(node_id, wire.boot(request), request.first, events)
        node = self._fleet.context.state.nodes.get(node_id)
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
