"""The service for operators."""

from neorion.keel.base import NotFound, did_you_mean
from neorion.keel.rpc import caller
from neorion.keel.rpc.paging import page_size
from neorion.navarch.controllers.fleet_controller import FleetController
from neorion.navarch.controllers.garbage_collection import GarbageCollector
from neorion.navarch.controllers.operator_actions import OperatorActions, Requester
from neorion.navarch.decide import explain_node, explain_pool, violations
from neorion.navarch.model import Health, Node, NodeState, PoolSpec, wire
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.gen.navarch_connect import FleetService
from neorion.navarch.serve.names import action_name, autoscaler_name
from neorion.navarch.state import events_of, story_of

PAGE_MAX = 1_000
LINES_MAX = 500
WHY_MAX = 300
# The subject under which a node's health events are asked for, as they were reported.
EVENTS = "events/"


class FleetEndpoint(FleetService):
    """FleetService over one fleet."""

    def __init__(self, fleet: FleetController, orders: OperatorActions, sweep: GarbageCollector) -> None:
        self._fleet = fleet
        self._context = fleet.context
        self._state = fleet.context.state
        self._orders = orders
        self._sweep = sweep

    # Pools.

    async def list_pools(self, request: pb.ListPoolsRequest, ctx: object) -> pb.ListPoolsResponse:
        return pb.ListPoolsResponse(pools=[self._pool(spec) for spec in self._context.specs.values()])

    async def get_pool(self, request: pb.GetPoolRequest, ctx: object) -> pb.Pool:
        return self._pool(self._context.spec(request.pool))

    async def scale_pool(self, request: pb.ScalePoolRequest, ctx: object) -> pb.Pool:
        await self._orders.scale(request.pool, request.nodes, _asker(request.why))
        return self._pool(self._context.spec(request.pool))

    async def pause_pool(self, request: pb.PausePoolRequest, ctx: object) -> pb.Pool:
        await self._orders.pause(request.pool, _asker(request.why))
        return self._pool(self._context.spec(request.pool))

    async def resume_pool(self, request: pb.ResumePoolRequest, ctx: object) -> pb.Pool:
        await self._orders.resume(request.pool, _asker(""))
        return self._pool(self._context.spec(request.pool))

    async def release_pool(self, request: pb.ReleasePoolRequest, ctx: object) -> pb.Pool:
        await self._orders.release(request.pool, _asker(request.why))
        return self._pool(self._context.spec(request.pool))

    async def readmit_machine(self, request: pb.ReadmitMachineRequest, ctx: object) -> pb.Pool:
        await self._orders.readmit(request.pool, request.machine, _asker(request.why))
        return self._pool(self._context.spec(request.pool))

    # Nodes.

    async def list_nodes(self, request: pb.ListNodesRequest, ctx: object) -> pb.ListNodesResponse:
        if request.pool:
            self._context.spec(request.pool)
        limit = page_size(request.limit, PAGE_MAX)
        found = [
            node
            for _, node in sorted(self._state.nodes.items())
            if node.id > request.after
            and request.pool in ("", node.pool)
            and (not request.states or node.state.value in request.states)
            and (not request.unhealthy or node.health is Health.UNHEALTHY)
        ][: limit + 1]
        more = found[limit - 1].id if len(found) > limit else ""
        return pb.ListNodesResponse(nodes=[self._node(node) for node in found[:limit]], next=more)

    async def get_node(self, request: pb.GetNodeRequest, ctx: object) -> pb.Node:
        return self._node(self._context.node(request.node))

    async def history(self, request: pb.HistoryRequest, ctx: object) -> pb.HistoryResponse:
        await self._context.journal.wait_durable()
        limit = page_size(request.limit, LINES_MAX)
        if request.subject.startswith(EVENTS):
            return await self._events(request.subject.removeprefix(EVENTS), limit)
        lines = await story_of(self._context.store, request.subject, limit)
        if not lines and not request.subject.startswith("pool/"):
            # A name other than its id.
            lines = await story_of(self._context.store, self._context.node(request.subject).id, limit)
        return pb.HistoryResponse(
            lines=[
                pb.Line(
                    at_ms=wire.ms(event.at), event=line.event, sentence=line.sentence, data=dict(line.data)
                )
                for event, line in lines
            ]
        )

    async def _events(self, name: str, limit: int) -> pb.HistoryResponse:
        """Recorded events of the node's agent."""
        found = await events_of(self._context.store, self._context.node(name).id, limit)
        return pb.HistoryResponse(
            lines=[
                pb.Line(
                    at_ms=wire.ms(event.at),
                    event=seen.signature,
                    sentence=seen.message or seen.description,
                    data={"event": event.body},
                )
                for event, seen in found
            ]
        )

    async def cordon_node(self, request: pb.NodeOrder, ctx: object) -> pb.Node:
        return self._node(await self._orders.cordon(request.node, _asker(request.why)))

    async def drain_node(self, request: pb.NodeOrder, ctx: object) -> pb.Node:
        return self._node(await self._orders.drain(request.node, _asker(request.why)))

    async def uncordon_node(self, request: pb.NodeOrder, ctx: object) -> pb.Node:
        return self._node(await self._orders.uncordon(request.node, _asker(request.why)))

    async def replace_node(self, request: pb.NodeOrder, ctx: object) -> pb.Repair:
        return wire.repair_message(await self._orders.replace(request.node, _asker(request.why)))

    async def approve_repair(self, request: pb.NodeOrder, ctx: object) -> pb.Repair:
        return wire.repair_message(await self._orders.approve(request.node, _asker(request.why)))

    async def veto_repair(self, request: pb.NodeOrder, ctx: object) -> pb.Repair:
        return wire.repair_message(await self._orders.veto(request.node, _asker(request.why)))

    # Words.

    async def explain(self, request: pb.ExplainRequest, ctx: object) -> pb.ExplainResponse:
        now = self._context.clock.now()
        spec = self._context.specs.get(request.subject.removeprefix("pool/"))
        if spec is not None:
            view = self._state.view(spec, self._context.started)
            told = explain_pool(view, self._fleet.plan(spec), now)
            return pb.ExplainResponse(subject=spec.name, sentences=told)
        node = self._node_or_pool(request.subject)
        spec = self._context.spec(node.pool)
        view = self._state.view(spec, self._context.started)
        return pb.ExplainResponse(
            subject=node.id, sentences=explain_node(node, view, self._fleet.plan(spec), now)
        )

    async def plan(self, request: pb.PlanRequest, ctx: object) -> pb.PlanResponse:
        specs = [self._context.spec(request.pool)] if request.pool else list(self._context.specs.values())
        answer = pb.PlanResponse()
        for spec in specs:
            found = self._fleet.plan(spec)
            answer.steps += [
                pb.Step(pool=spec.name, action=action_name(action), sentence=action.sentence)
                for action in found.actions
            ]
            answer.holds += [wire.reason_message(hold, spec.name) for hold in found.holds]
        return answer

    async def doctor(self, request: pb.DoctorRequest, ctx: object) -> pb.DoctorResponse:
        found = [
            finding
            for spec in self._context.specs.values()
            for finding in violations(self._state.view(spec, self._context.started))
        ]
        found += [*self._context.findings.values(), *self._sweep.findings.values()]
        found += await self._context.store.check()
        return pb.DoctorResponse(findings=[wire.found_message(finding) for finding in found])

    def _node_or_pool(self, subject: str) -> Node:
        try:
            return self._context.node(subject)
        except NotFound as error:
            hint = did_you_mean(subject, [*self._context.specs, *self._state.nodes]) or error.hint
            raise NotFound(
                "navarch.nothing", f"There is no pool and no node {subject[:80]!r}.", hint=hint
            ) from None

    def _node(self, node: Node) -> pb.Node:
        return wire.node_message(
            node, self._state.heartbeats.get(node.id), self._state.open_repairs.get(node.id)
        )

    def _pool(self, spec: PoolSpec) -> pb.Pool:
        pool_cache = self._state.pool(spec.name)
        counts = dict.fromkeys(NodeState, 0)
        for node in pool_cache.nodes.values():
            counts[node.state] += 1
        return pb.Pool(
            name=spec.name,
            min_nodes=spec.scaling.least,
            max_nodes=spec.scaling.most,
            wanted=max(pool_cache.state.wanted, spec.scaling.least),
            wanted_by=pool_cache.state.wanted_by,
            paused=pool_cache.state.paused,
            nodes={state.value: count for state, count in counts.items() if count},
            unhealthy=sum(node.health is Health.UNHEALTHY for node in pool_cache.nodes.values()),
            spares=counts[NodeState.SPARE],
            repairs=sum(not repair.step.over for repair in pool_cache.repairs.values()),
            holds=[wire.reason_message(hold, spec.name) for hold in pool_cache.holds],
            providers=[offer.provider for offer in spec.offers],
            autoscaler=autoscaler_name(spec.scaling.autoscaler),
            labels=dict(spec.labels),
            dollars_per_hour=sum(
                node.place.price for node in pool_cache.nodes.values() if not node.state.leaving
            ),
            unhealthy_after=spec.health.unhealthy_after,
            barred=list(pool_cache.state.barred),
        )


def _asker(why: str) -> Requester:
    return Requester(caller().name, " ".join(why.split())[:WHY_MAX])
