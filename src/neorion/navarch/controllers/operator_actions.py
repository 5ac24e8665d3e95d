"""Operators' actions. Each is refused whole or durable when it returns, and records its requester."""

from dataclasses import dataclass

from msgspec.structs import replace

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Conflict, Invalid, NotFound, did_you_mean
from neorion.navarch.controllers.fleet_controller import FleetController
from neorion.navarch.decide import recovered
from neorion.navarch.model import Node, NodeState, PoolState, Repair, RepairId, RepairStep


@dataclass(frozen=True, slots=True)
class Requester:
    """Name and reason of an operator who requests an action."""

    name: str
    why: str = ""

    @property
    def sentence(self) -> str:
        return f"{self.name}: {self.why}" if self.why else f"asked for by {self.name}"


_AT_REST = (NodeState.ACTIVE, NodeState.UNCORDONING, NodeState.SPARE, NodeState.VERIFYING)
_AT_WORK = (NodeState.ACTIVE, NodeState.UNCORDONING, NodeState.SPARE)
_OUT_OF_SERVICE = (NodeState.CORDONED, NodeState.DRAINING, NodeState.DRAINED)


class OperatorActions:
    """The hands of operators."""

    def __init__(self, fleet: FleetController) -> None:
        self._fleet = fleet
        self._context = fleet.context
        self._state = fleet.context.state
        self._writer = fleet.writer

    async def cordon(self, name: str, asker: Requester) -> Node:
        """Takes no new work, and is left as it is until a person says otherwise."""
        node = self._hold(self._context.node(name), asker)
        if node.state is NodeState.DRAINING:
            node = self._writer.transition_node(node, NodeState.CORDONED, asker.sentence)
        return await self._done(node)

    async def drain(self, name: str, asker: Requester) -> Node:
        node = self._hold(self._context.node(name), asker)
        if node.state is NodeState.CORDONED:
            node = self._writer.transition_node(node, NodeState.DRAINING, asker.sentence)
        return await self._done(node)

    async def uncordon(self, name: str, asker: Requester) -> Node:
        """Works again. Whatever was being done to it is called off: a person says that it is well."""
        node = self._context.node(name)
        kept_at_work = node.held and node.state in _AT_WORK
        if node.state not in _OUT_OF_SERVICE and not kept_at_work:
            raise _cannot("uncordoned", node)
        self._cancel_repair(node, asker)
        node = replace(recovered(node), held=False, retiring=False)
        if kept_at_work:
            node = replace(node, why=asker.sentence)
            self._writer.update_node(node)
            return await self._done(node)
        if node.state in (NodeState.DRAINING, NodeState.DRAINED):
            node = self._writer.transition_node(node, NodeState.CORDONED, asker.sentence)
        return await self._done(self._writer.transition_node(node, NodeState.UNCORDONING, asker.sentence))

    async def replace(self, name: str, asker: Requester) -> Repair:
        """Replaced in the safe order, within the pool's budgets; a repair of another kind gives way."""
        node = self._context.node(name)
        if node.state.leaving or node.state.coming:
            raise _cannot("replaced", node)
        current = self._state.open_repairs.get(node.id)
        if current is not None and current.remedy.costs_the_node:
            return await self._approve(current, asker)
        if current is not None:
            self._cancel_repair(node, asker)
        now = self._context.clock.now()
        repair = Repair(
            id=self._context.ids.new(RepairId),
            node=node.id,
            pool=node.pool,
            remedy=Remedy.REPLACE,
            signature=node.ailment.signature if node.ailment else "operator",
            why=asker.sentence,
            opened=now,
            since=now,
            approved=True,
            by=asker.name,
            host=node.host,
            times={RepairStep.WAITING.value: now},
        )
        self._state.put_repair(repair)
        self._writer.record_event(
            node.id, "repair.waiting", f"to be replaced: {asker.sentence}", repair=repair.id
        )
        return await self._settled(repair)

    async def approve(self, name: str, asker: Requester) -> Repair:
        return await self._approve(self._waiting(name), asker)

    async def veto(self, name: str, asker: Requester) -> Repair:
        """The repair does not take place, and the node is left as it is until a person says otherwise."""
        node = self._context.node(name)
        repair = self._state.open_repairs.get(node.id)
        if repair is None:
            raise _no_repair(node)
        self._cancel_repair(node, asker)
        why = f"vetoed, {asker.sentence}"
        held = replace(node, held=True, retiring=False, why=why)
        if node.state is NodeState.DRAINING and repair.step is RepairStep.DRAINING:
            self._writer.transition_node(held, NodeState.CORDONED, why)
        else:
            # A drain that a person asked for goes on.
            self._writer.update_node(held)
        return await self._settled(self._state.repairs[repair.id])

    async def scale(self, pool: str, size: int, asker: Requester) -> PoolState:
        spec = self._context.spec(pool)
        least, most = spec.scaling.least, spec.scaling.most
        if not least <= size <= most:
            raise Invalid(
                "navarch.pool_size",
                f"{pool} has between {least} and {most} nodes, not {size}.",
                hint="Change min_nodes or max_nodes in the configuration.",
            )
        now = self._context.clock.now()
        state = replace(self._state.pool(pool).state, wanted=size, wanted_by=asker.sentence, scaled=now)
        return await self._keep_pool(state, f"wants {size} nodes: {asker.sentence}")

    async def pause(self, pool: str, asker: Requester) -> PoolState:
        """Nothing is bought, given back or repaired; what is under way comes to its end."""
        self._context.spec(pool)
        state = replace(self._state.pool(pool).state, paused=asker.sentence)
        return await self._keep_pool(state, f"paused: {asker.sentence}")

    async def resume(self, pool: str, asker: Requester) -> PoolState:
        self._context.spec(pool)
        state = replace(self._state.pool(pool).state, paused="")
        return await self._keep_pool(state, f"resumed: {asker.sentence}")

    async def release(self, pool: str, asker: Requester) -> PoolState:
        """Lets repairs begin that wait because many agents fell silent together; budgets and witnesses still count."""
        self._context.spec(pool)
        state = replace(self._state.pool(pool).state, released=self._context.clock.now())
        return await self._keep_pool(state, f"repairs of silent nodes released: {asker.sentence}")

    async def readmit(self, pool: str, machine: str, asker: Requester) -> PoolState:
        """Let an adopted machine that was replaced join again."""
        self._context.spec(pool)
        state = self._state.pool(pool).state
        if machine not in state.barred:
            raise NotFound(
                "navarch.not_barred",
                f"No machine {machine[:80]!r} of {pool} was replaced.",
                hint=did_you_mean(machine, state.barred),
            )
        rest = tuple(name for name in state.barred if name != machine)
        return await self._keep_pool(
            replace(state, barred=rest), f"{machine} may join again: {asker.sentence}"
        )

    def _waiting(self, name: str) -> Repair:
        node = self._context.node(name)
        repair = self._state.open_repairs.get(node.id)
        if repair is None:
            raise _no_repair(node)
        if repair.step is not RepairStep.WAITING:
            raise Conflict(
                "navarch.begun",
                f"The repair of {node.id} has begun already.",
                hint=f"Run: navarch explain {node.id}.",
            )
        return repair

    async def _approve(self, repair: Repair, asker: Requester) -> Repair:
        approved = replace(repair, approved=True, by=asker.name)
        self._state.put_repair(approved)
        self._writer.record_event(repair.node, "repair.approved", asker.sentence, repair=repair.id)
        return await self._settled(approved)

    def _hold(self, node: Node, asker: Requester) -> Node:
        """Out of service, and nothing takes it away: what was to give it back or treat it is called off."""
        if node.state not in (*_AT_REST, *_OUT_OF_SERVICE):
            raise _cannot("cordoned", node)
        repair = self._state.open_repairs.get(node.id)
        if repair is not None and _takes_away(repair):
            self._cancel_repair(node, asker)
        held = replace(node, held=True, retiring=False, why=asker.sentence)
        if node.state in _AT_REST:
            return self._writer.transition_node(held, NodeState.CORDONED, asker.sentence)
        self._writer.update_node(held)
        return held

    def _cancel_repair(self, node: Node, asker: Requester) -> None:
        repair = self._state.open_repairs.get(node.id)
        if repair is None:
            return
        if repair.step in (RepairStep.TREATING, RepairStep.VERIFYING, RepairStep.TERMINATING):
            raise Conflict(
                "navarch.too_late",
                f"The repair of {node.id} cannot be called off any more: it is {repair.step.value}.",
                hint=f"Run: navarch explain {node.id}.",
            )
        self._writer.transition_repair(repair, RepairStep.CANCELLED, asker.sentence)

    async def _keep_pool(self, state: PoolState, sentence: str) -> PoolState:
        self._state.put_pool(state)
        self._writer.record_event(f"pool/{state.name}", "pool.ordered", sentence)
        self._context.wake()
        await self._context.journal.wait_durable()
        return state

    async def _done(self, node: Node) -> Node:
        await self._context.journal.wait_durable()
        return node

    async def _settled(self, repair: Repair) -> Repair:
        self._context.wake()
        await self._context.journal.wait_durable()
        return repair


def _takes_away(repair: Repair) -> bool:
    """Reports whether a repair takes its node out of service. One that waits does so only after approval."""
    if repair.step is RepairStep.WAITING:
        return repair.approved
    return repair.step is not RepairStep.VERIFYING


def _cannot(verb: str, node: Node) -> Conflict:
    return Conflict(
        "navarch.node_state",
        f"{node.id} is {node.state.value} and cannot be {verb}.",
        hint=f"Run: navarch explain {node.id}.",
    )


def _no_repair(node: Node) -> NotFound:
    return NotFound(
        "navarch.no_repair", f"Nothing is to be done to {node.id}.", hint=f"Run: navarch explain {node.id}."
    )
