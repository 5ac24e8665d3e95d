"""Everything the control plane knows, in memory, by pool."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from neorion.capacity.provider import IntentId
from neorion.keel.base import Duration, Instant
from neorion.navarch.model import (
    Availability,
    Demand,
    DesiredSize,
    FailureStreak,
    HealthEvent,
    Hold,
    Node,
    NodeHeartbeat,
    NodeId,
    NodeState,
    Placement,
    PoolNodeIndex,
    PoolSpec,
    PoolState,
    PoolView,
    Purchase,
    PurchaseState,
    Repair,
    RepairId,
)
from neorion.navarch.state.codec import HistoryEntry, to_text
from neorion.navarch.state.journal import HEALTH, STORY, Journal

# What a decision looks back on; older purchases are rows of the store.
PURCHASES_FOR = Duration.of(hours=1)
WISHES_MAX = 1_000
EVENTS_MAX = 64


@dataclass(slots=True)
class PoolCache:
    """The records of one pool, and what is known of it but not written down."""

    state: PoolState
    roll: PoolNodeIndex = field(default_factory=PoolNodeIndex)
    repairs: dict[RepairId, Repair] = field(default_factory=dict[RepairId, Repair])
    purchases: dict[IntentId, Purchase] = field(default_factory=dict[IntentId, Purchase])
    wishes: deque[DesiredSize] = field(default_factory=lambda: deque[DesiredSize](maxlen=WISHES_MAX))
    demand: Demand = field(default_factory=Demand)
    holds: tuple[Hold, ...] = ()
    # Those of its nodes that were told of at all.
    events: dict[NodeId, deque[HealthEvent]] = field(default_factory=dict[NodeId, deque[HealthEvent]])

    @property
    def nodes(self) -> Mapping[NodeId, Node]:
        return self.roll.nodes


class FleetState:
    """Records by id. `put_…` is the only way in: it keeps every index and notes the change."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.pools: dict[str, PoolCache] = {}
        self.nodes: dict[NodeId, Node] = {}
        self.repairs: dict[RepairId, Repair] = {}
        self.purchases: dict[IntentId, Purchase] = {}
        self.troubles: dict[str, FailureStreak] = {}
        self.stock: dict[str, Availability] = {}
        self.heartbeats: dict[NodeId, NodeHeartbeat] = {}
        self.events: dict[NodeId, deque[HealthEvent]] = {}
        # By every name that an agent may use for its machine.
        self.names: dict[str, dict[NodeId, None]] = {}
        # Nodes that changed since the fleet controller last started their effects.
        self.touched: dict[NodeId, None] = {}
        self.repairs_of: dict[NodeId, dict[RepairId, Repair]] = {}
        # At most one for each node.
        self.open_repairs: dict[NodeId, Repair] = {}

    # Ways in.

    def put_node(self, node: Node) -> None:
        """A node that is gone is forgotten here; its story stays."""
        if node.state is NodeState.TERMINATED:
            self._journal.note("node", node.id, None)
            self._rename(self.nodes.pop(node.id, None), None)
            self.pool(node.pool).roll.drop(node.id)
            self.pool(node.pool).events.pop(node.id, None)
            self.heartbeats.pop(node.id, None)
            self.events.pop(node.id, None)
        else:
            self._journal.note("node", node.id, node)
            self.index_node(node)

    def put_purchase(self, purchase: Purchase) -> None:
        self._journal.note("purchase", purchase.id, purchase)
        self.index_purchase(purchase)

    def put_repair(self, repair: Repair) -> None:
        self._journal.note("repair", repair.id, repair)
        self.index_repair(repair)

    def put_pool(self, state: PoolState) -> None:
        self._journal.note("pool", state.name, state)
        self.pool(state.name).state = state

    def put_trouble(self, trouble: FailureStreak) -> None:
        self._journal.note("trouble", trouble.scope, trouble)
        self.troubles[trouble.scope] = trouble

    def drop_trouble(self, scope: str) -> None:
        if self.troubles.pop(scope, None) is not None:
            self._journal.note("trouble", scope, None)

    def record_heartbeat(self, node: NodeId, heartbeat: NodeHeartbeat) -> None:
        """A sign of life, which is not written down."""
        self.heartbeats[node] = heartbeat
        if (known := self.nodes.get(node)) is not None:
            self.pool(known.pool).roll.move_to_end(node)

    def add_event(self, node: NodeId, event: HealthEvent) -> None:
        self._journal.append(HEALTH, node, event.at, to_text(event))
        self.index_event(node, event)

    def append_history(self, subject: str, at: Instant, line: HistoryEntry) -> None:
        """One line of the subject's story."""
        self._journal.append(STORY, subject, at, to_text(line))

    # Ways out.

    def forget_purchases(self, now: Instant) -> None:
        """Settled ones that no decision looks at; their rows stay."""
        for purchase in list(self.purchases.values()):
            settled = purchase.state is not PurchaseState.INTENDED
            if settled and now.since(purchase.intended) > PURCHASES_FOR:
                del self.purchases[purchase.id]
                self.pool(purchase.pool).purchases.pop(purchase.id, None)

    def drop_repair(self, repair: Repair) -> None:
        self._journal.note("repair", repair.id, None)
        del self.repairs[repair.id]
        self.pool(repair.pool).repairs.pop(repair.id, None)
        of_node = self.repairs_of[repair.node]
        del of_node[repair.id]
        if not of_node:
            del self.repairs_of[repair.node]

    # Indexes, which also load records from the store: those must not be noted again.

    def index_node(self, node: Node) -> None:
        self._rename(self.nodes.get(node.id), node)
        self.nodes[node.id] = node
        self.pool(node.pool).roll.put(node)
        self.touched[node.id] = None

    def _rename(self, old: Node | None, new: Node | None) -> None:
        if old is not None and new is not None and _late_names(old) == _late_names(new):
            return
        if old is not None and (new is None or old.names != new.names):
            for name in old.names:
                self.names[name].pop(old.id, None)
                if not self.names[name]:
                    del self.names[name]
        if new is not None and (old is None or old.names != new.names):
            for name in new.names:
                self.names.setdefault(name, {})[new.id] = None

    def index_purchase(self, purchase: Purchase) -> None:
        self.purchases[purchase.id] = purchase
        self.pool(purchase.pool).purchases[purchase.id] = purchase

    def index_repair(self, repair: Repair) -> None:
        self.repairs[repair.id] = repair
        self.pool(repair.pool).repairs[repair.id] = repair
        self.repairs_of.setdefault(repair.node, {})[repair.id] = repair
        if not repair.step.over:
            self.open_repairs[repair.node] = repair
        elif (known := self.open_repairs.get(repair.node)) is not None and known.id == repair.id:
            del self.open_repairs[repair.node]

    def index_event(self, node: NodeId, event: HealthEvent) -> None:
        known = self.events.get(node)
        if known is None:
            known = self.events[node] = deque(maxlen=EVENTS_MAX)
            self.pool(self.nodes[node].pool).events[node] = known
        known.append(event)

    def pool(self, pool: str) -> PoolCache:
        found = self.pools.get(pool)
        if found is None:
            found = self.pools[pool] = PoolCache(PoolState(pool))
        return found

    # Views.

    def view(self, spec: PoolSpec, started: Instant) -> PoolView:
        """A view of the pool at this moment. Mutable indexes in it are not copied."""
        pool_cache = self.pool(spec.name)
        return PoolView(
            spec=spec,
            state=pool_cache.state,
            roll=pool_cache.roll,
            repairs=tuple(pool_cache.repairs.values()),
            purchases=tuple(pool_cache.purchases.values()),
            heartbeats=self.heartbeats,
            started=started,
            demand=pool_cache.demand,
            wishes=tuple(pool_cache.wishes),
            elsewhere=self._purchases_of_other_pools(spec.name) if self.troubles else (),
            troubles=self.troubles,
            stock=self.stock,
            events=pool_cache.events,
        )

    def _purchases_of_other_pools(self, pool: str) -> list[Placement]:
        return [
            one.place
            for one in self.purchases.values()
            if one.state is PurchaseState.INTENDED and one.pool != pool
        ]


def _late_names(node: Node) -> tuple[str, str, str]:
    """Names that a node does not have from the start; almost no change of it is one of these."""
    return node.machine, node.machine_name, node.kube_name
