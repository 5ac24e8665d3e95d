"""The size of a pool: what it should have, what it has, and what to buy or give back to get there."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from typing import Final, Self

from neorion.capacity.gpu import shape_of
from neorion.keel.base import Duration, Instant
from neorion.navarch.decide.actions import NOBODY, Action, ProvisionNode, RetireNode, SetDesiredSize
from neorion.navarch.decide.autoscale import AutoscalerInput, advise
from neorion.navarch.decide.offering import backoff_until, choose_placement
from neorion.navarch.model import (
    DesiredSize,
    Hold,
    HoldReason,
    Node,
    NodeId,
    NodeState,
    Origin,
    Placement,
    PoolView,
    PurchaseState,
    Repair,
    RepairId,
    is_settled,
)

_HOUR = Duration.of(hours=1)
# Clouds answer some dozens of calls at once; the rest of a large order is decided on when these are on their way.
AT_ONCE_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class Target:
    """Desired size of the pool and its source. `wish` is the autoscaler's request before limits and cooldowns."""

    size: int
    by: str
    wish: DesiredSize | None = None


def count_members(view: PoolView) -> int:
    """Number of pool members. A node and its replacement count once; adopted nodes do not count."""
    replaced = _replaced(view)
    both = sum((node := view.node(one)) is not None and is_settled(node) for one in replaced)
    return view.settled - both + sum(_is_member(node, replaced) for node in view.unsettled)


def members(view: PoolView) -> list[Node]:
    """Members of the pool. It reads every node, so call it only when one of them must go."""
    replaced = _replaced(view)
    return [node for node in view.nodes if _is_member(node, replaced)]


def _replaced(view: PoolView) -> set[NodeId]:
    return {repair.node for repair in view.open_repairs if view.successor(repair) is not None}


def _is_member(node: Node, replaced: AbstractSet[NodeId]) -> bool:
    return (
        node.origin is Origin.BOUGHT
        and not node.state.leaving
        and not node.spare
        and not node.retiring
        and node.id not in replaced
    )


def target(view: PoolView, now: Instant) -> Target:
    """An operator's word or the autoscaler's, held back by cooldown, stabilisation and step, within the limits."""
    scaling, state = view.spec.scaling, view.state
    least, most = scaling.least, scaling.most
    held = max(least, min(most, state.wanted if state.wanted >= 0 else least))
    if scaling.autoscaler is None:
        return Target(held, state.wanted_by or f"at least {least}")
    shape = shape_of(view.spec.offers[0].instance_type)
    scene = AutoscalerInput(held, least, most, view.demand, now, shape.gpus if shape else 0)
    advice = advise(scaling.autoscaler, scene)
    if advice is None:
        return Target(held, state.wanted_by or "the autoscaler knows too little to ask for more or less")
    wish = DesiredSize(now, advice.size)
    if advice.size == held or (state.scaled is not None and now.since(state.scaled) < scaling.cooldown):
        return Target(held, state.wanted_by or advice.why, wish)
    if advice.size > held:
        return Target(min(advice.size, held + scaling.step_up), advice.why, wish)
    recent = [one.size for one in view.wishes if now.since(one.at) < scaling.stable]
    # Shrinking must have been right for a while: what was needed a minute ago may be needed in a minute.
    # A process that has not run for so long cannot know: wishes are not written down.
    young = view.started is not None and now.since(view.started) < scaling.stable
    size = max([advice.size, *recent]) if view.wishes and not young else held
    return Target(max(min(size, held), held - scaling.step_down), advice.why, wish)


def resize(view: PoolView, goal: Target, seekers: Sequence[Repair], now: Instant) -> Iterator[Action | Hold]:
    """`seekers` are repairs that wait for a successor to be bought."""
    if goal.size != view.state.wanted:
        yield SetDesiredSize(view.spec.name, goal.size, goal.by)
    have = count_members(view)
    if view.state.paused:
        yield from _paused(view, goal, have, seekers)
        return
    yield from _buy(view, _purchases_needed(view, goal, have, seekers), now)
    if have > goal.size:
        yield from _retire(view, have - goal.size, goal.by)
    yield from _spare_too_many(view)


def _paused(view: PoolView, goal: Target, have: int, seekers: Sequence[Repair]) -> Iterator[Hold]:
    """Holds on purchases of a paused pool: of replacements that are not bought yet, and of the pool's own size."""
    waiting = [repair.node for repair in seekers]
    for subject in [*waiting, *([view.spec.name] if have != goal.size else [])]:
        yield Hold(HoldReason.PAUSED, subject, detail=view.state.paused, pool=view.spec.name)


@dataclass(frozen=True, slots=True)
class _PurchaseReason:
    why: str
    spare: bool = False
    repair: RepairId = NOBODY


def _purchases_needed(
    view: PoolView, goal: Target, have: int, seekers: Sequence[Repair]
) -> Iterator[_PurchaseReason]:
    """Purchases in their order: replacements, because a repair waits for them; the pool's size; spares."""
    for repair in seekers:
        yield _PurchaseReason(f"takes the place of {repair.node}", repair=repair.id)
    for _ in range(goal.size - have):
        yield _PurchaseReason(f"{have} of {goal.size} nodes: {goal.by}")
    kept = _spares(view)
    for _ in range(view.spec.scaling.spares - kept):
        yield _PurchaseReason(f"{kept} of {view.spec.scaling.spares} spares", spare=True)


def _spares(view: PoolView) -> int:
    """Those on their way too; one that serves is none any more."""
    return sum(node.spare and not node.state.leaving for node in view.unsettled)


def _buy(view: PoolView, shopping: Iterator[_PurchaseReason], now: Instant) -> Iterator[ProvisionNode | Hold]:
    planned: list[Placement] = []
    till = _SpendTracker.of(view, now)
    for want in islice(shopping, AT_ONCE_MAX):
        found = _spend_holds(view, till, planned, now) or choose_placement(view, planned, now)
        if isinstance(found, Placement):
            found = _too_much(view, [*planned, found]) or found
        if isinstance(found, Hold):
            # What stops one stops the rest.
            yield found
            return
        planned.append(found)
        yield ProvisionNode(view.spec.name, found, want.why, want.spare, want.repair)


@dataclass(frozen=True, slots=True)
class _SpendTracker:
    """Machines and purchases of a pool, counted once for all purchases of a decision."""

    alive: int
    coming: int
    lately: int

    @classmethod
    def of(cls, view: PoolView, now: Instant) -> Self:
        lately = sum(
            purchase.state in (PurchaseState.INTENDED, PurchaseState.BOUGHT)
            and now.since(purchase.intended) < _HOUR
            for purchase in view.purchases
        )
        coming = sum(node.state.coming for node in view.paid)
        return cls(view.settled + len(view.paid), coming, lately)


def _spend_holds(
    view: PoolView, till: _SpendTracker, planned: Sequence[Placement], now: Instant
) -> Hold | None:
    name, spending, scaling = view.spec.name, view.spec.spending, view.spec.scaling
    alive = till.alive + len(planned)
    most = scaling.most + scaling.spares + scaling.surge.of(scaling.most)
    if alive >= most:
        return Hold(HoldReason.POOL_MAX, name, have=alive, most=most)
    lately = till.lately + len(planned)
    if lately >= spending.per_hour:
        return Hold(HoldReason.PURCHASES, name, have=lately, most=spending.per_hour)
    trouble = view.troubles.get(name)
    if trouble is not None and trouble.times >= spending.breaker:
        coming = till.coming + len(planned)
        if now < backoff_until(trouble) or coming:
            later = backoff_until(trouble) if now < backoff_until(trouble) else None
            return Hold(HoldReason.BREAKER, name, have=trouble.times, until=later)
    return None


def _too_much(view: PoolView, planned: Sequence[Placement]) -> Hold | None:
    most = view.spec.spending.total
    if not most or view.dollars + sum(place.price for place in planned) <= most:
        return None
    spends, price = view.dollars + sum(place.price for place in planned[:-1]), planned[-1].price
    return Hold(
        HoldReason.SPEND,
        view.spec.name,
        detail=f"{spends:g} of at most {most:g} dollars an hour, and a machine costs {price:g}",
    )


def _retire(view: PoolView, surplus: int, why: str) -> Iterator[RetireNode]:
    """Retires surplus nodes in this order: not yet active, unhealthy, without work, idle for longest, least used."""
    busy = {repair.node for repair in view.open_repairs} | {
        repair.successor for repair in view.open_repairs if repair.successor
    }
    willing = [
        node for node in members(view) if node.id not in busy and not node.held and node.state in _RETIRABLE
    ]
    willing.sort(key=lambda node: _missed(node, view))
    for node in willing[:surplus]:
        yield RetireNode(node.id, f"the pool is too large: {why}")


_AT_WORK = (NodeState.UNCORDONING, NodeState.ACTIVE, NodeState.CORDONED)
_RETIRABLE = (NodeState.BOOTING, NodeState.VERIFYING, *_AT_WORK)


def _missed(node: Node, view: PoolView) -> tuple[object, ...]:
    """Work that holds GPUs counts before what they do: it may load data, or wait for its user."""
    heartbeat, busy = (
        view.heartbeat(node.id),
        any(name in view.demand.busy for name in (*node.names, node.agent)),
    )
    idle = heartbeat.idle.ns if heartbeat.idle is not None else 2**63
    used = heartbeat.utilisation if heartbeat.utilisation is not None else 100.0
    return (not node.state.coming, node.ailment is None, busy, idle, used, NodeId(node.id))


def _spare_too_many(view: PoolView) -> Iterator[RetireNode]:
    spares = [node for node in view.unsettled if node.state is NodeState.SPARE and not node.held]
    kept = _spares(view)
    for node in spares[: max(0, kept - view.spec.scaling.spares)]:
        yield RetireNode(node.id, "more spares than the pool keeps")
