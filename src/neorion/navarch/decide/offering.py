"""Where the next machine is bought."""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from neorion.keel.base import Duration, Instant
from neorion.navarch.model import (
    Availability,
    FailureStreak,
    Hold,
    HoldReason,
    Placement,
    PoolView,
    PurchaseState,
)
from neorion.navarch.model.spec import Offer, PoolSpec, Strategy

# First wait after a refusal, and the longest, by what was refused. Stock comes back in minutes, quota takes a person.
_BACKOFF = {
    "no_capacity": (Duration.of(seconds=30), Duration.of(minutes=10)),
    "quota": (Duration.of(minutes=5), Duration.of(hours=1)),
    "denied": (Duration.of(minutes=5), Duration.of(hours=1)),
    "invalid": (Duration.of(minutes=10), Duration.of(hours=1)),
    "no_answer": (Duration.of(minutes=1), Duration.of(minutes=30)),
    "boot": (Duration.of(minutes=1), Duration.of(minutes=30)),
}


def backoff_until(trouble: FailureStreak) -> Instant:
    """When the scope may be asked again."""
    first, most = _BACKOFF[trouble.kind]
    return trouble.at + min(most, first * 2 ** min(trouble.times - 1, 16))


def choose_placement(view: PoolView, planned: Sequence[Placement], now: Instant) -> Placement | Hold:
    """The best place that can be asked now; `planned` are those that this decision has chosen already."""
    all_places = [(offer, _priced(place, view)) for offer in view.spec.offers for place in placements(offer)]
    affordable = [pair for pair in all_places if _affordable(pair[1], view.spec)]
    if not affordable:
        spending = view.spec.spending
        dearest = ", ".join(sorted({f"{place.provider} {_price(place)}" for _, place in all_places}))
        return Hold(
            HoldReason.TOO_DEAR,
            view.spec.name,
            detail=f"{dearest}; most {spending.price or spending.total:g}",
        )
    open_now = [pair for pair in affordable if not _waits(pair[1], view, planned, now)]
    if not open_now:
        return _backing_off([place for _, place in affordable], view, now)
    ahead = Counter(place.where for place in planned)
    return min(
        open_now,
        key=lambda pair: (
            *_rank(pair[0], pair[1], view, len(planned)),
            view.spread[pair[1].where] + ahead[pair[1].where],
        ),
    )[1]


def placements(offer: Offer) -> list[Placement]:
    """Everywhere an offer may be taken up."""
    return [
        Placement(offer.provider, offer.instance_type, region, zone, offer.spot, offer.reservation)
        for region in offer.regions or ("",)
        for zone in offer.zones or ("",)
        if not zone or not region or zone.startswith(region) or len(offer.regions) == 1
    ]


def _priced(place: Placement, view: PoolView) -> Placement:
    stock = view.stock.get(place.scopes[0])
    return place if stock is None else replace(place, price=stock.price)


def _affordable(place: Placement, spec: PoolSpec) -> bool:
    """Reports whether the price is within the pool's limits. An unknown price is not, if there is a limit."""
    most = spec.spending.price or spec.spending.total
    return not most or 0 < place.price <= most


def _waits(place: Placement, view: PoolView, planned: Sequence[Placement], now: Instant) -> bool:
    """A scope that refused lately is left alone for a while, and then asked with one machine first."""
    for scope in place.scopes:
        trouble = view.troubles.get(scope)
        if trouble is None:
            continue
        if now < backoff_until(trouble):
            return True
        if any(scope in other.scopes for other in (*_being_tried(view), *planned)):
            return True
    return False


def _being_tried(view: PoolView) -> Iterator[Placement]:
    """Placements with an unanswered purchase, of this pool or another. Only one pool tries a placement at a time."""
    yield from view.elsewhere
    for purchase in view.purchases:
        if purchase.state is PurchaseState.INTENDED:
            yield purchase.place


def _rank(offer: Offer, place: Placement, view: PoolView, ahead: int) -> tuple[float, ...]:
    match view.spec.strategy:
        case Strategy.PRIORITY:
            return (not place.reservation, offer.priority)
        case Strategy.COST:
            return (not place.price, place.price, offer.priority)
        case Strategy.AVAILABILITY:
            stock = view.stock.get(place.scopes[0], Availability())
            # Those that do not tell come between those that have some and those that have none.
            return (0.5 if stock.available is None else not stock.available, offer.priority)
        case Strategy.ROUND_ROBIN:
            turns = [one for one in view.spec.offers for _ in range(one.weight)]
            now_at = (view.state.turn + ahead) % len(turns)
            return (next(step for step in range(len(turns)) if turns[(now_at + step) % len(turns)] == offer),)


def _backing_off(places: Sequence[Placement], view: PoolView, now: Instant) -> Hold:
    troubles = [view.troubles[scope] for place in places for scope in place.scopes if scope in view.troubles]
    later = [at for trouble in troubles if now < (at := backoff_until(trouble))]
    words = "; ".join(sorted({trouble.message or trouble.kind for trouble in troubles}))
    return Hold(HoldReason.BACKING_OFF, view.spec.name, detail=words, until=min(later, default=None))


def _price(place: Placement) -> str:
    return f"{place.price:g}" if place.price else "(price not known)"
