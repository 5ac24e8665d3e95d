"""Registrations, heartbeats and events of agents.

A heartbeat writes nothing to the store. An event is durable before its agent may forget it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from typing import Final

from msgspec.structs import replace

from neorion.capacity.gpu import shape_of
from neorion.capacity.node import IdentityClaim, KnownNode, resolve
from neorion.capacity.provider import MachineId
from neorion.keel.base import Denied, Duration, Instant, Retry
from neorion.keel.telemetry import logger
from neorion.navarch.controllers.context import FleetContext
from neorion.navarch.controllers.incident_recorder import IncidentRecorder
from neorion.navarch.controllers.state_writer import StateWriter
from neorion.navarch.decide import diagnose, recovered
from neorion.navarch.decide.policy import NodeHistory, policy_input
from neorion.navarch.model import (
    EventKind,
    Health,
    HealthEvent,
    Node,
    NodeHeartbeat,
    NodeId,
    NodeState,
    Origin,
    Placement,
    PolicyResult,
)
from neorion.navarch.ports import Gpu

log = logger(__name__)

# Below this a node does nothing that anybody would miss.
IDLE_PERCENT: Final = 1.0
# Lives of an agent whose events may still be on their way; one that restarts more often than it is heard sends old ones first.
LIVES_MAX: Final = 4


@dataclass(frozen=True, slots=True)
class Registration:
    """An agent's claims when it starts."""

    claim: IdentityClaim
    pool: str = ""
    gpus: int = 0
    instance_type: str = ""
    kube_name: str = ""
    kernel_boot: str = ""
    secret_digest: str = ""
    # It came with the node's own token, so it is who it says.
    proven: bool = False


@dataclass(slots=True)
class GpuTelemetry:
    """The newest measurements of a node, for metrics."""

    gpus: Sequence[Gpu] = ()


class AgentReports:
    """The ears of the control plane."""

    def __init__(
        self, context: FleetContext, writer: StateWriter, incident_recorder: IncidentRecorder
    ) -> None:
        self._context = context
        self._state = context.state
        self._writer = writer
        self._incident_recorder = incident_recorder
        self.vitals: dict[NodeId, GpuTelemetry] = {}
        # Is told how long an event was on its way until it was judged; metrics stand behind it.
        self.detected: Callable[[str, Duration], None] = lambda _pool, _lag: None
        # By pool and code, since the process began.
        self.xids: dict[tuple[str, int], int] = {}

    async def register(self, said: Registration) -> Node:
        """The node that this agent speaks for. Registering again changes nothing about the node's state."""
        found, in_cluster = self._identify(said.claim)
        node = found or self._join(said)
        now = self._context.clock.now()
        self._check_same(node, said, now)
        known = replace(
            node,
            agent=said.claim.name,
            kube_name=said.kube_name or in_cluster or node.kube_name,
            kernel_boot=said.kernel_boot or node.kernel_boot,
            secret_digest=said.secret_digest or node.secret_digest,
            gpus=node.gpus or said.gpus,
        )
        self._record_contact(node.id, now)
        if node.state is NodeState.BOOTING:
            known = self._writer.transition_node(
                known, NodeState.VERIFYING, f"its agent registered as {said.claim.name}"
            )
        elif known != node:
            self._writer.update_node(known)
        await self._context.journal.wait_durable()
        return known

    def heartbeat(self, node_id: NodeId, gpus: Sequence[Gpu], *, tested: bool | None) -> Node:
        node = self._context.node(node_id)
        now = self._context.clock.now()
        used = sum([gpu.utilisation for gpu in gpus]) / len(gpus) if gpus else None
        heartbeat = self._state.heartbeats.get(node_id) or NodeHeartbeat()
        busy = used is not None and used >= IDLE_PERCENT
        self._state.record_heartbeat(
            node_id,
            NodeHeartbeat(
                heard=now,
                marked=heartbeat.marked,
                utilisation=used,
                idle=None if busy else heartbeat.idle or now,
                tested=heartbeat.tested if tested is None else tested,
                treated=heartbeat.treated,
                refused=heartbeat.refused,
                waits=heartbeat.waits,
            ),
        )
        self._vitals(node_id).gpus = gpus
        if node.ailment is not None and node.ailment.signature == EventKind.SILENCE:
            self._writer.update_node(recovered(node))
            self._writer.record_event(node_id, "node.recovered", "it is heard again")
        elif node.health is Health.UNKNOWN:
            self._writer.update_node(replace(node, health=Health.HEALTHY))
        if heartbeat.heard is None or (tested is not None and tested != heartbeat.tested):
            self._context.wake()
        return self._state.nodes[node_id]

    async def report(self, node_id: NodeId, boot: str, first: int, events: Sequence[HealthEvent]) -> None:
        """Takes events, each once: one sent again because its answer was lost is not counted again."""
        self._record_contact(node_id, self._context.clock.now())
        skipped = self._skipped(self._context.node(node_id), boot, first, len(events))
        if skipped == len(events):
            # An answer says that they are kept, also the second.
            await self._context.journal.wait_durable()
            return
        fresh = events[skipped:]
        verdicts = await self._evaluate(node_id, fresh)
        node = self._state.nodes.get(node_id)
        if node is None:
            return
        # Judging took a while, and the agent may have lost its patience and sent them again.
        since = self._skipped(node, boot, first + skipped, len(fresh))
        after = self._take(node, list(zip(fresh, verdicts, strict=True))[since:])
        # In the same write as the events themselves: a crash keeps both or neither.
        self._state.put_node(_noted(after, boot, first + len(events) - 1))
        await self._context.journal.wait_durable()

    async def observe(self, node_id: NodeId, events: Sequence[HealthEvent]) -> None:
        """Judges events by the pool's policy, and the node by the verdicts."""
        verdicts = await self._evaluate(node_id, events)
        # Judging took a while: the node may be another by now, or gone.
        node = self._state.nodes.get(node_id)
        if node is None:
            return
        after = self._take(node, list(zip(events, verdicts, strict=True)))
        if after is not node:
            self._state.put_node(after)
        await self._context.journal.wait_durable()

    async def _evaluate(self, node_id: NodeId, events: Sequence[HealthEvent]) -> Sequence[PolicyResult]:
        node = self._context.node(node_id)
        rules = self._context.spec(node.pool).health
        recent = list(self._state.events.get(node_id, ()))
        repairs = list(self._state.repairs_of.get(node_id, {}).values())
        now, engine = self._context.clock.now(), self._context.backends.policy_engine
        sees = engine.variables(rules.policy)
        situations = [
            policy_input(event, node, NodeHistory([*recent, *events[:index]], repairs), now, sees)
            for index, event in enumerate(events)
        ]
        return await engine.evaluate(rules.policy, situations)

    async def silence(self, node_id: NodeId, since: Instant) -> None:
        """Seen from here: an agent that has not spoken for too long."""
        event = HealthEvent(self._context.clock.now(), EventKind.SILENCE, message=f"not heard since {since}")
        if node_id in self._state.nodes:
            await self.observe(node_id, [event])

    def forget_gone(self) -> None:
        for node in [one for one in self.vitals if one not in self._state.nodes]:
            del self.vitals[node]

    def _take(self, node: Node, judged: Sequence[tuple[HealthEvent, PolicyResult]]) -> Node:
        """The node as it is after these events, each of them written down."""
        self._incident_recorder.add_event()
        before = node
        for event, verdict in judged:
            node = self._take_one(node, event, verdict)
        if _diagnosis(node) != _diagnosis(before):
            # What only happens once more calls for nothing new; storms are made of that.
            self._context.wake()
        return node

    def _take_one(self, node: Node, event: HealthEvent, verdict: PolicyResult) -> Node:
        self._state.add_event(node.id, event)
        self.detected(node.pool, self._context.clock.now().since(event.at))
        if event.kind is EventKind.XID:
            key = (node.pool, event.xid)
            self.xids[key] = self.xids.get(key, 0) + 1
        after = diagnose(node, event, verdict, self._context.spec(node.pool).health)
        log.info(
            "health event",
            node=node.id,
            seen=event.signature,
            rule=verdict.rule,
            result=verdict.result.value,
        )
        if after.health is not node.health or (after.ailment and not node.ailment):
            self._writer.record_event(
                node.id, f"health.{after.health.value}", verdict.sentence, pool=node.pool
            )
        return after

    def _vitals(self, node_id: NodeId) -> GpuTelemetry:
        found = self.vitals.get(node_id)
        if found is None:
            found = self.vitals[node_id] = GpuTelemetry()
        return found

    def _skipped(self, node: Node, boot: str, first: int, count: int) -> int:
        """Number of events in a batch that were recorded before."""
        return min(count, max(0, node.taken.get(boot, 0) + 1 - first))

    def _check_same(self, node: Node, said: Registration, now: Instant) -> None:
        """Refuses another machine that uses the name of a live one. A machine without its credentials waits a little."""
        if said.proven or node.secret_digest in ("", said.secret_digest):
            return
        heartbeat, timing = (
            self._state.heartbeats.get(node.id, NodeHeartbeat()),
            self._context.spec(node.pool).timing,
        )
        quiet = (timing.heartbeat + timing.silence) * 0.5
        left = quiet - now.since(heartbeat.heard or self._context.started)
        if left:
            raise Retry(
                "navarch.not_the_same",
                f"Another agent speaks for {node.id}, and it is not long ago.",
                hint="Keep the agent's --state folder over restarts; without it, joining again takes a while.",
                after=left,
            )
        self._writer.record_event(
            node.id, "node.rejoined", "an agent without the papers of before speaks for it now"
        )

    def _record_contact(self, node_id: NodeId, now: Instant) -> None:
        self._state.record_heartbeat(
            node_id, replace(self._state.heartbeats.get(node_id, NodeHeartbeat()), heard=now)
        )

    def find(self, said: Registration) -> Node | None:
        return self._identify(said.claim)[0]

    def _identify(self, claim: IdentityClaim) -> tuple[Node | None, str]:
        """The node that the claim is about, and what the cluster calls it where the cluster had to be asked."""
        node = self._resolve(claim)
        if node is not None:
            return node, ""
        aliases = self._context.backends.aliases(claim.name)
        return self._resolve(changed(claim, aliases=aliases)), claim.name if aliases else ""

    def _resolve(self, claim: IdentityClaim) -> Node | None:
        known = [
            KnownNode(node.id, node.machine, node.machine_name or node.purchase, node.kube_name)
            for node in self._called(claim)
        ]
        found = resolve(claim, known)
        if found is None:
            return None
        node = self._state.nodes[NodeId(found)]
        if node.state is NodeState.ORDERED:
            raise Retry(
                "navarch.not_yet",
                f"{node.id} is ordered; its cloud has not answered yet.",
                hint="Try again soon.",
            )
        return node

    def _called(self, claim: IdentityClaim) -> list[Node]:
        """Nodes that go by any of the claim's names."""
        found = {node: None for name in sorted(claim.names) for node in self._state.names.get(name, ())}
        return [self._state.nodes[node] for node in found]

    def _join(self, said: Registration) -> Node:
        """Adopts a machine that navarch did not buy, if the pool allows it."""
        spec = self._context.specs.get(said.pool)
        if spec is None or not spec.adopt:
            raise Denied(
                "navarch.stranger",
                f"No machine that was bought here is called {said.claim.name[:80]!r}.",
                hint="To watch machines of others, set adopt: true on their pool and start the agent with --pool.",
            )
        barred = said.claim.names.intersection(self._state.pool(spec.name).state.barred)
        if barred:
            name = min(barred)
            raise Denied(
                "navarch.replaced",
                f"The machine {name[:80]!r} of {spec.name} was replaced.",
                hint=f"Run navarch pool readmit {spec.name} {name[:80]} once it is repaired.",
            )
        now = self._context.clock.now()
        place = Placement("", said.instance_type or spec.offers[0].instance_type)
        shape = shape_of(place.instance_type) or shape_of(spec.offers[0].instance_type)
        node = Node(
            id=self._context.ids.new(NodeId),
            pool=spec.name,
            place=place,
            # What its type has, not what it still shows.
            gpus=shape.gpus if shape else said.gpus,
            born=now,
            since=now,
            state=NodeState.BOOTING,
            why="navarch did not buy it",
            origin=Origin.JOINED,
            machine=MachineId(said.claim.machine),
            machine_name=said.claim.name,
        )
        self._writer.update_node(node)
        self._writer.record_event(
            node.id, "node.joined", f"{said.claim.name} joined {spec.name}", pool=spec.name
        )
        return node


def _noted(node: Node, boot: str, last: int) -> Node:
    """The node whose agent's events, of this life of it, were taken up to this one."""
    others = {life: number for life, number in node.taken.items() if life != boot}
    newest = dict(list(others.items())[1 - LIVES_MAX :])
    return replace(node, taken={**newest, boot: max(last, node.taken.get(boot, 0))})


def _diagnosis(node: Node) -> tuple[object, ...]:
    """The facts about a node's health that decisions use."""
    sick = node.ailment
    return (node.health,) if sick is None else (node.health, sick.signature, sick.result, sick.remedy)
