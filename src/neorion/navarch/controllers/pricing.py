"""Current prices and availability of machines, by placement."""

from collections.abc import Iterable, Mapping, Sequence

from neorion.capacity.prices import PriceTable
from neorion.capacity.provider import Capability, Offering, Provider
from neorion.keel.base import Error
from neorion.keel.telemetry import logger
from neorion.navarch.controllers.context import FleetContext
from neorion.navarch.decide import placements
from neorion.navarch.model import Availability, Placement

log = logger(__name__)


class PriceRefresher:
    """Asks now and then. What a cloud tells by itself counts; of the others, the price prices knows the price at least."""

    def __init__(self, context: FleetContext, books: Mapping[str, PriceTable]) -> None:
        self._context = context
        self._tables = books

    async def tick(self) -> None:
        by_cloud: dict[str, list[Placement]] = {}
        for spec in self._context.specs.values():
            for place in (place for offer in spec.offers for place in placements(offer)):
                by_cloud.setdefault(place.provider, []).append(place)
        found: dict[str, Availability] = {}
        for name, wanted in by_cloud.items():
            found |= await self._ask(self._context.backends.providers[name], wanted)
        if found != self._context.state.stock:
            self._context.state.stock = found
            self._context.wake()

    async def _ask(self, provider: Provider, wanted: Sequence[Placement]) -> dict[str, Availability]:
        told: Sequence[Offering] = ()
        if Capability.OFFERINGS in provider.capabilities:
            try:
                told = await provider.offerings(sorted({place.instance_type for place in wanted}))
            except Error as error:
                # What it said last is the best that is known.
                log.warning("prices are not known", provider=provider.name, why=error.sentence)
                before = self._context.state.stock
                return {key: before[key] for place in wanted if (key := place.scopes[0]) in before}
        prices = self._tables.get(provider.name)
        return {
            place.scopes[0]: stock for place in wanted if (stock := _stock(place, told, prices)) is not None
        }


def _stock(place: Placement, told: Iterable[Offering], prices: PriceTable | None) -> Availability | None:
    fitting = [
        one
        for one in told
        if (one.instance_type, one.region, one.spot) == (place.instance_type, place.region, place.spot)
        and (not place.zone or one.zone in ("", place.zone))
    ]
    if fitting:
        # What is said of the zone itself counts; where the cloud is to choose the zone, the dearest.
        best = max(fitting, key=lambda one: (one.zone == place.zone, one.price))
        return Availability(best.price, best.available)
    price = prices.price(place.instance_type, place.region, spot=place.spot) if prices is not None else None
    return Availability(price) if price is not None else None
