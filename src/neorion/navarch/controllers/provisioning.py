"""Purchases: intent, call, outcome. The only place that buys.

The intent is durable before the call, and its id is what the cloud recognises it by. So a call whose answer was lost is
repeated, by this process or by the next, until the cloud has said for certain what became of it.
"""

from msgspec.structs import replace

from neorion.capacity.node import marks
from neorion.capacity.provider import Intent, IntentId, Machine, MachineState
from neorion.keel.base import (
    Deadline,
    Denied,
    Duration,
    Error,
    Instant,
    Invalid,
    NoCapacity,
    QuotaExceeded,
    Retry,
)
from neorion.keel.clock import fault_point
from neorion.navarch.controllers.bootstrap import seed_of
from neorion.navarch.controllers.context import FleetContext
from neorion.navarch.controllers.state_writer import StateWriter
from neorion.navarch.model import PURCHASE, NodeState, Purchase, PurchaseState

# Longer than any cloud remembers a request: then it is not asked again, and its list alone decides.
ABANDON_AFTER = Duration.of(minutes=30)
# Above the lag of any cloud's list: what the last call has made is in it by then.
LISTED_WITHIN = Duration.of(minutes=5)


class Provisioner:
    """Settles purchases."""

    def __init__(self, context: FleetContext, writer: StateWriter) -> None:
        self._context = context
        self._state = context.state
        self._writer = writer
        # Purchases of which a call was never answered: their machines may have been made.
        self._unanswered: set[IntentId] = set()
        # Those of them that were asked for often enough, and when for the last time.
        self._asked_last: dict[IntentId, Instant] = {}

    async def buy(self, intent: IntentId) -> None:
        purchase = self._state.purchases.get(intent)
        if purchase is None or purchase.state is not PurchaseState.INTENDED:
            return
        if intent in self._asked_last:
            await self._find_lost_purchase(purchase)
            return
        await self._context.journal.wait_durable()
        await fault_point("navarch.buy.before")
        provider = self._context.backends.providers[purchase.place.provider]
        try:
            machine = await provider.provision(self._intent(purchase))
        except Denied as error:
            # A permission error says nothing about whether an earlier, unanswered request succeeded.
            if self._outcome_unknown(purchase):
                self._trouble(purchase, error)
                self._ask_again(purchase)
                raise
            self._refused(intent, error)
        except (NoCapacity, QuotaExceeded, Invalid) as error:
            self._refused(intent, error)
        except Deadline:
            self._unanswered.add(intent)
            self._ask_again(purchase)
            raise
        else:
            await fault_point("navarch.buy.after")
            self.bought(intent, machine)

    def _outcome_unknown(self, purchase: Purchase) -> bool:
        """Reports whether an earlier request may have succeeded without its answer being recorded."""
        return purchase.id in self._unanswered or purchase.intended < self._context.started

    def _ask_again(self, purchase: Purchase) -> None:
        """Lets the request be repeated, until so much time has passed that only the cloud's list gives the answer."""
        now = self._context.clock.now()
        if not now.since(purchase.intended) < ABANDON_AFTER:
            self._asked_last[purchase.id] = now

    def bought(self, intent: IntentId, machine: Machine) -> None:
        """Records that the cloud created the machine, which boots now."""
        purchase = self._state.purchases.get(intent)
        if purchase is None or purchase.state is not PurchaseState.INTENDED:
            return
        if machine.state is MachineState.GONE:
            self._settle(replace(purchase, state=PurchaseState.REFUSED, machine=machine.id))
            self._abandon_node(purchase, "its machine ended before it was known")
            return
        self._settle(replace(purchase, state=PurchaseState.BOUGHT, machine=machine.id))
        for scope in purchase.place.scopes:
            self._state.drop_trouble(scope)
        node = self._state.nodes.get(purchase.node)
        if node is None:
            # Its node is gone, so the garbage collection terminates the machine.
            return
        place = replace(
            node.place, zone=machine.zone or node.place.zone, region=machine.region or node.place.region
        )
        known = replace(
            node,
            place=place,
            machine=machine.id,
            machine_name=machine.name,
            host=machine.host,
            address=machine.private_address or machine.address,
        )
        self._writer.transition_node(known, NodeState.BOOTING, f"{purchase.place.provider} made {machine.id}")

    def _intent(self, purchase: Purchase) -> Intent:
        spec, place = self._context.spec(purchase.pool), purchase.place
        bootstrapper = self._context.backends.bootstrapper
        startup = ""
        if bootstrapper is not None and spec.bootstrap.commands and not spec.bootstrap.first_contact:
            startup = bootstrapper.startup(seed_of(self._context.installation.secret, purchase.id))
        return Intent(
            id=purchase.id,
            owner=self._context.installation.id,
            instance_type=place.instance_type,
            region=place.region,
            zone=place.zone,
            spot=place.spot,
            reservation=place.reservation,
            image=spec.image,
            ssh_keys=spec.ssh_keys,
            startup=startup,
            labels=(*spec.labels, (marks.POOL, spec.name), (marks.NODE_ID, str(purchase.node))),
        )

    def _refused(self, intent: IntentId, error: Error) -> None:
        purchase = self._state.purchases[intent]
        self._trouble(purchase, error)
        self._settle(
            replace(purchase, state=PurchaseState.REFUSED, refusal=error.code, message=error.sentence[:300])
        )
        self._abandon_node(purchase, error.sentence)

    def _trouble(self, purchase: Purchase, error: Error) -> None:
        zone, region, cloud = purchase.place.scopes
        match error:
            case NoCapacity():
                scope, kind = zone, "no_capacity"
            case QuotaExceeded():
                scope, kind = region, "quota"
            case Denied():
                scope, kind = cloud, "denied"
            case _:
                scope, kind = region, "invalid"
        self._writer.record_failure(scope, kind, error.sentence, purchase.intended)

    async def _find_lost_purchase(self, purchase: Purchase) -> None:
        provider = self._context.backends.providers[purchase.place.provider]
        try:
            machines = await provider.list(self._context.installation.id)
        except Denied:
            # That may last for days: others are asked, and what was made here is given back when we are let in again.
            machines = ()
        for machine in machines:
            if machine.intent == purchase.id:
                self.bought(purchase.id, machine)
                return
        # It was settled during the request, with newer knowledge.
        if self._state.purchases[purchase.id].state is not PurchaseState.INTENDED:
            return
        left = LISTED_WITHIN - self._context.clock.now().since(self._asked_last[purchase.id])
        cloud = purchase.place.provider
        if left:
            raise Retry(
                "navarch.unsettled",
                f"{cloud} may still list what it was asked for last.",
                hint="Wait: it is looked for again.",
                after=left,
            )
        why = f"{cloud} did not say for {ABANDON_AFTER} whether it was made"
        self._settle(replace(purchase, state=PurchaseState.ABANDONED))
        # The next one is ordered elsewhere, if there is another cloud.
        self._writer.record_failure(purchase.place.scopes[-1], "no_answer", why, purchase.intended)
        self._abandon_node(purchase, why)

    def _settle(self, purchase: Purchase) -> None:
        PURCHASE.check(purchase.id, PurchaseState.INTENDED, purchase.state)
        self._asked_last.pop(purchase.id, None)
        self._unanswered.discard(purchase.id)
        self._state.put_purchase(replace(purchase, settled=self._context.clock.now()))
        self._context.watch(purchase)
        self._context.wake()

    def _abandon_node(self, purchase: Purchase, why: str) -> None:
        node = self._state.nodes.get(purchase.node)
        if node is not None:
            self._writer.transition_node(node, NodeState.TERMINATED, why)
