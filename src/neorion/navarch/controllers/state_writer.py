"""The only writer of nodes and repairs: checks every move against its table and tells it in the node's story."""

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
    """Changes of records, each with its reason."""

    def __init__(self, deck: FleetContext) -> None:
        self._deck = deck
        self._book = deck.book

    def node(self, node: Node, to: NodeState, why: str) -> Node:
        NODE.check(node.id, node.state, to)
        now = self._deck.clock.now()
        moved = replace(node, state=to, since=now, why=why)
        if to is NodeState.UNCORDONING:
            moved = replace(moved, spare=False)
        if to is NodeState.ACTIVE:
            moved = replace(moved, served=node.served or now)
        if node.state is NodeState.DRAINED and to is NodeState.VERIFYING:
            # Treated: what was wrong must be seen again to count again.
            moved = replace(moved, ailment=None, health=Health.UNKNOWN)
        self._book.put_node(moved)
        self.tell(node.id, f"node.{to.value}", f"{node.state.value} → {to.value}: {why}", pool=node.pool)
        if node.state.coming and to in (NodeState.UNCORDONING, NodeState.SPARE):
            self._book.drop_trouble(node.pool)
        self._deck.watch(moved)
        self._deck.wake()
        return moved

    def change(self, node: Node) -> None:
        """Anything but its state."""
        self._book.put_node(node)
        self._deck.wake()

    def step(self, repair: Repair, to: RepairStep, why: str) -> Repair:
        REPAIR.check(repair.id, repair.step, to)
        now = self._deck.clock.now()
        moved = replace(
            repair,
            step=to,
            since=now,
            hold="",
            ended=now if to.over else None,
            times={**repair.times, to.value: now},
        )
        self._book.put_repair(moved)
        if to is RepairStep.TERMINATING:
            self._bar(repair.node)
        self.tell(
            repair.node, f"repair.{to.value}", f"{repair.remedy.value}, {to.value}: {why}", repair=repair.id
        )
        self._deck.watch(moved)
        self._deck.wake()
        return moved

    def _bar(self, node_id: NodeId) -> None:
        """Remember the names of an adopted machine, which its agent must not register again after a replacement."""
        node = self._book.nodes.get(node_id)
        if node is None or node.origin is not Origin.JOINED:
            return
        state = self._book.shelf(node.pool).state
        names = (name for name in (node.machine, node.machine_name, node.kube_name) if name)
        barred = tuple(dict.fromkeys((*state.barred, *names)))[-BARRED_MAX:]
        self._book.put_pool(replace(state, barred=barred))

    def assign_replacement(self, repair: Repair, node: NodeId, why: str) -> None:
        self._book.put_repair(replace(repair, successor=node))
        self.tell(repair.node, "repair.successor", f"{why}{f': {node}' if node else ''}", repair=repair.id)
        self._deck.wake()

    def trouble(self, scope: str, kind: str, message: str, asked: Instant | None = None) -> None:
        """One more in a row. What was `asked` before the last was known is no further try: it counts with that one."""
        before = self._book.troubles.get(scope)
        times = 1
        if before is not None and before.kind == kind:
            times = before.times + (asked is None or before.at < asked)
        self._book.put_trouble(FailureStreak(scope, kind, times, self._deck.clock.now(), message[:300]))

    def current(self, repair: RepairId) -> Repair | None:
        return self._book.repairs.get(repair)

    def tell(self, subject: str, event: str, sentence: str, **data: str) -> None:
        now = self._deck.clock.now()
        self._book.tell(subject, now, HistoryEntry(event, sentence, data))
        if (pool := data.get("pool")) is not None:
            self._book.tell(
                f"pool/{pool}", now, HistoryEntry(event, f"{subject}: {sentence}", {"node": subject})
            )
