"""The only writer of nodes and repairs: checks every transition, and records it in the node's history."""

from typing import Final

from msgspec.structs import replace

from neorion.keel.base import Instant
from neorion.navarch.controllers.context import FleetContext
from neorion.navarch.model import (
    NODE,
    REPAIR,
    FailureStreak,
    Health,
    Node,
    NodeId,
    NodeState,
    Origin,
    Repair,
    RepairId,
    RepairStep,
)
from neorion.navarch.state import HistoryEntry

# Names of replaced machines that are remembered, the newest of them.
BARRED_MAX: Final = 1_000


class StateWriter:
    """Writes changes of nodes and repairs, each with its reason."""

    def __init__(self, context: FleetContext) -> None:
        self._context = context
        self._state = context.state

    def transition_node(self, node: Node, to: NodeState, why: str) -> Node:
        NODE.check(node.id, node.state, to)
        now = self._context.clock.now()
        moved = replace(node, state=to, since=now, why=why)
        if to is NodeState.UNCORDONING:
            moved = replace(moved, spare=False)
        if to is NodeState.ACTIVE:
            moved = replace(moved, served=node.served or now)
        if node.state is NodeState.DRAINED and to is NodeState.VERIFYING:
            # Treated: what was wrong must be seen again to count again.
            moved = replace(moved, ailment=None, health=Health.UNKNOWN)
        self._state.put_node(moved)
        self.record_event(
            node.id, f"node.{to.value}", f"{node.state.value} → {to.value}: {why}", pool=node.pool
        )
        if node.state.coming and to in (NodeState.UNCORDONING, NodeState.SPARE):
            self._state.drop_trouble(node.pool)
        self._context.watch(moved)
        self._context.wake()
        return moved

    def update_node(self, node: Node) -> None:
        """Writes a change of any field but the state."""
        self._state.put_node(node)
        self._context.wake()

    def transition_repair(self, repair: Repair, to: RepairStep, why: str) -> Repair:
        REPAIR.check(repair.id, repair.step, to)
        now = self._context.clock.now()
        moved = replace(
            repair,
            step=to,
            since=now,
            hold="",
            ended=now if to.over else None,
            times={**repair.times, to.value: now},
        )
        self._state.put_repair(moved)
        if to is RepairStep.TERMINATING:
            self._bar(repair.node)
        self.record_event(
            repair.node, f"repair.{to.value}", f"{repair.remedy.value}, {to.value}: {why}", repair=repair.id
        )
        self._context.watch(moved)
        self._context.wake()
        return moved

    def _bar(self, node_id: NodeId) -> None:
        """Remember the names of an adopted machine, which its agent must not register again after a replacement."""
        node = self._state.nodes.get(node_id)
        if node is None or node.origin is not Origin.JOINED:
            return
        state = self._state.pool(node.pool).state
        names = (name for name in (node.machine, node.machine_name, node.kube_name) if name)
        barred = tuple(dict.fromkeys((*state.barred, *names)))[-BARRED_MAX:]
        self._state.put_pool(replace(state, barred=barred))

    def assign_replacement(self, repair: Repair, node: NodeId, why: str) -> None:
        self._state.put_repair(replace(repair, successor=node))
        self.record_event(
            repair.node, "repair.successor", f"{why}{f': {node}' if node else ''}", repair=repair.id
        )
        self._context.wake()

    def record_failure(self, scope: str, kind: str, message: str, asked: Instant | None = None) -> None:
        """Counts one more failure in a row. A request that was `asked` before the last failure counts with that one."""
        before = self._state.troubles.get(scope)
        times = 1
        if before is not None and before.kind == kind:
            times = before.times + (asked is None or before.at < asked)
        self._state.put_trouble(FailureStreak(scope, kind, times, self._context.clock.now(), message[:300]))

    def current(self, repair: RepairId) -> Repair | None:
        return self._state.repairs.get(repair)

    def record_event(self, subject: str, event: str, sentence: str, **data: str) -> None:
        now = self._context.clock.now()
        self._state.append_history(subject, now, HistoryEntry(event, sentence, data))
        if (pool := data.get("pool")) is not None:
            self._state.append_history(
                f"pool/{pool}", now, HistoryEntry(event, f"{subject}: {sentence}", {"node": subject})
            )
