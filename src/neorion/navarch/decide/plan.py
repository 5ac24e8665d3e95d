"""The whole decision for one pool."""

from collections.abc import Iterable

from neorion.keel.base import Duration, Instant
from neorion.navarch.decide import node_lifecycle, pool_size, repair
from neorion.navarch.decide.actions import Action, PoolPlan
from neorion.navarch.decide.offering import backoff_until
from neorion.navarch.model import Hold, NodeState, PoolView, RepairStep

# A moment after a limit, so that the next look finds it passed.
_PAST = Duration.of(ms=1)


def plan(view: PoolView, now: Instant) -> PoolPlan:
    """Plans lifecycle, then repairs, then size. Each sees the pool as it was at the start.

    One exception: replacements for repairs of this same plan are bought first, so that nothing else uses their capacity.
    """
    found: list[Action | Hold] = [*node_lifecycle.advance_nodes(view, now), *repair.open_needed(view, now)]
    advanced = tuple(repair.advance_open(view, now))
    found += advanced
    found += repair.admit_waiting(view, now)
    goal = pool_size.target(view, now)
    found += pool_size.resize(view, goal, repair.awaiting_replacement(view, advanced), now)
    actions = tuple(one for one in found if not isinstance(one, Hold))
    holds = tuple(one for one in found if isinstance(one, Hold))
    return PoolPlan(actions, holds, goal.wish, _wake_at(view, holds, now))


def _wake_at(view: PoolView, holds: Iterable[Hold], now: Instant) -> Instant | None:
    """The next moment at which time alone changes the answer."""
    timing = view.spec.timing
    moments = [hold.until for hold in holds if hold.until is not None]
    for node in view.unsettled:
        if node.state is NodeState.BOOTING:
            moments.append(node.since + timing.boot)
        elif node.state is NodeState.VERIFYING:
            moments.append(node.since + timing.verify)
            moments.append(node.since + timing.verify_most)
    quiet_since = (now - timing.silence).ns
    heard = next((at for _, at in view.speaking() if at.ns >= quiet_since), None)
    if heard is not None:
        moments.append(heard + timing.silence)
    moments += [one.since + timing.treat for one in view.open_repairs if one.step is RepairStep.TREATING]
    moments += [backoff_until(trouble) for trouble in view.troubles.values()]
    later = [moment + _PAST for moment in moments if now < moment + _PAST]
    return min(later, default=None)
