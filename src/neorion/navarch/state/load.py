"""Fills the fleet from the store, once, at the start; and reads what only the store keeps."""

from neorion.capacity.provider import IntentId
from neorion.keel.base import Instant
from neorion.keel.clock import Ids
from neorion.keel.store import EventRecord, Store
from neorion.navarch.model import (
    FailureStreak,
    HealthEvent,
    InstallationId,
    Node,
    NodeId,
    PoolState,
    Purchase,
    PurchaseState,
    Repair,
)
from neorion.navarch.state.codec import HistoryEntry, Installation, R, decode, encode, from_text
from neorion.navarch.state.fleet_state import PURCHASES_FOR, FleetState
from neorion.navarch.state.journal import HEALTH, STORY


async def load(store: Store, fleet: FleetState, now: Instant) -> None:
    for state in await _all(store, "pool", PoolState):
        fleet.pool(state.name).state = state
    for node in await _all(store, "node", Node):
        fleet.index_node(node)
    for repair in await _all(store, "repair", Repair):
        fleet.index_repair(repair)
    for trouble in await _all(store, "trouble", FailureStreak):
        fleet.troubles[trouble.scope] = trouble
    for purchase in await _all(store, "purchase", Purchase):
        if purchase.state is PurchaseState.INTENDED or now.since(purchase.intended) <= PURCHASES_FOR:
            fleet.index_purchase(purchase)
    rows = await store.read(lambda tx: tx.execute("SELECT subject, body FROM health_event ORDER BY seq"))
    for subject, body in rows:
        if (node_id := NodeId(subject)) in fleet.nodes:
            fleet.index_event(node_id, from_text(HealthEvent, body))


async def installation(store: Store, ids: Ids) -> Installation:
    """Loads this installation's id and secret. They are created once."""
    fresh = Installation(ids.new(InstallationId), ids.secret())
    body = encode(fresh)
    await store.write(
        lambda tx: tx.execute(
            "INSERT INTO installation (id, body) VALUES ('self', ?) ON CONFLICT (id) DO NOTHING", (body,)
        )
    )
    (found,) = await _all(store, "installation", Installation)
    return found


async def purchase_of(store: Store, intent: IntentId) -> Purchase | None:
    """Also one that memory has let go."""
    rows = await store.read(lambda tx: tx.execute("SELECT body FROM purchase WHERE id = ?", (str(intent),)))
    return decode(Purchase, bytes(rows[0][0])) if rows else None


async def story_of(store: Store, subject: str, limit: int) -> list[tuple[EventRecord, HistoryEntry]]:
    """The newest lines, the oldest of them first."""
    events = await store.read(lambda tx: STORY.recent(tx, subject, limit))
    return [(event, from_text(HistoryEntry, event.body)) for event in reversed(events)]


async def events_of(store: Store, node: NodeId, limit: int) -> list[tuple[EventRecord, HealthEvent]]:
    """Recorded events of a node's agent, the oldest first."""
    events = await store.read(lambda tx: HEALTH.recent(tx, node, limit))
    return [(event, from_text(HealthEvent, event.body)) for event in reversed(events)]


async def _all(store: Store, table: str, kind: type[R]) -> list[R]:
    rows = await store.read(lambda tx: tx.execute(f"SELECT body FROM {table} ORDER BY id"))  # noqa: S608 -- our own table names
    return [decode(kind, bytes(body)) for (body,) in rows]
