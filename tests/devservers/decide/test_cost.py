"""What a server has cost, over starts, stops, moves and edited prices."""

from datetime import timedelta

from msgspec.structs import replace

from neorion.devservers.decide import ClusterFacts, Observed, accrued, decide
from neorion.devservers.model import DevServerSpec, DevServerStatus, Lifecycle, Price
from neorion.devservers.testing import FLAVOR, SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.kube.core import PodStatus

HOUR = timedelta(hours=1)
QUIET = DevServerSpec(flavor="cpu-small", lifecycle=Lifecycle(auto_shutdown=False))


def test_each_period_is_paid_at_its_own_price():
    dear = replace(FLAVOR, price=Price(per_hour="10", stopped="0.5"))
    status = decide(Observed(a_server(QUIET), a_flavor(), pods=(a_pod(),)), SETTINGS, CREATED).status
    moved = replace(QUIET, flavor="dear")
    off = replace(moved, running=False)
    for spec, hours in ((moved, 1), (off, 3), (moved, 7)):
        pods = (a_pod(),) if spec.running else ()
        seen = Observed(a_server(spec, status), a_flavor(dear, "dear"), pods=pods)
        status = decide(seen, SETTINGS, CREATED + hours * HOUR).status
    assert status.cost
    assert status.cost.amount == "23"
    assert (status.cost.running_seconds, status.cost.stopped_seconds) == (3 * 3600, 4 * 3600)


def test_a_server_that_waits_for_a_machine_does_not_pay_for_one():
    status = DevServerStatus()
    placeless = a_pod(status=PodStatus(phase="Pending"))
    for pods, hours in (((), 0), ((placeless,), 1), ((a_pod(),), 5), ((), 7), ((), 9)):
        seen = Observed(a_server(QUIET, status), a_flavor(), a_claim(), pods=pods)
        status = decide(seen, SETTINGS, CREATED + hours * HOUR).status
    assert status.cost
    # Five hours without one at 0.1, two with one at 1; what follows is not booked yet.
    assert (status.cost.amount, status.cost.running) == ("2.5", False)
    assert accrued(status.cost, CREATED + 9 * HOUR).amount == "2.7"


def test_a_price_that_is_edited_counts_from_then_on_while_the_server_runs_and_while_it_rests():
    def look(
        spec: DevServerSpec, status: DevServerStatus, price: Price | None, hours: int
    ) -> DevServerStatus:
        flavor = a_flavor(replace(FLAVOR, price=price)) if price else None
        seen = Observed(a_server(spec, status), flavor, a_claim(), pods=(a_pod(),) if spec.running else ())
        return decide(seen, SETTINGS, CREATED + hours * HOUR).status

    dear = Price(per_hour="10", stopped="1")
    status = look(QUIET, DevServerStatus(), Price(per_hour="1", stopped="0"), 0)
    status = look(QUIET, status, dear, 2)
    assert look(QUIET, status, dear, 3) == status
    # Nobody can tell the price of a flavor that is gone: it stays what it was.
    assert look(QUIET, status, None, 3).cost == status.cost
    off = replace(QUIET, running=False)
    status = look(off, status, dear, 4)
    status = look(off, status, Price(per_hour="10", stopped="3"), 5)
    assert look(off, status, Price(per_hour="10", stopped="3"), 6) == status
    status = look(QUIET, status, Price(per_hour="10", stopped="3"), 7)
    assert status.cost
    # Two hours at 1, two at 10; at rest one at 1 and two at 3.
    assert status.cost.amount == "29"


def test_a_server_that_is_held_on_its_flavor_pays_for_that_one():
    around = ClusterFacts(nodes=())
    dear = replace(FLAVOR, node_selector={"zone": "moon"}, price=Price(per_hour="10"))
    ran = decide(Observed(a_server(QUIET), a_flavor(), a_claim(), pods=(a_pod(),)), SETTINGS, CREATED).status
    moved = a_server(replace(QUIET, flavor="dear"), ran)
    held = Observed(moved, a_flavor(dear, "dear"), a_claim(), pods=(a_pod(),), around=around)
    status = decide(held, SETTINGS, CREATED + HOUR).status
    assert status.message
    assert status.cost == ran.cost
