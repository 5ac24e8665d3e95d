"""How a server is put together from what is seen of the cluster."""

from msgspec.structs import replace

from neorion.devservers.controllers import ClusterCache
from neorion.devservers.model import AppliedFlavor, DevServerSpec, DevServerStatus, FlavorLimits
from neorion.devservers.model.kube_types import DEVSERVERFLAVORS, DEVSERVERS, DevServerObject
from neorion.devservers.testing import FLAVOR, a_flavor
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube import ObjectKey, ObjectMeta
from neorion.keel.kube.control import InformerFactory
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

SCARCE = replace(
    a_flavor(replace(FLAVOR, limits=FlavorLimits(max_per_user=1)), "scarce"),
    meta=ObjectMeta(name="scarce", resource_version="1"),
)


def a_server_of_ann(name: str, asks: str, stands: str) -> DevServerObject:
    return DevServerObject(
        meta=ObjectMeta(name=name, namespace="dev-ann", resource_version="1", created="2026-11-16T08:00:00Z"),
        spec=DevServerSpec(flavor=asks),
        status=DevServerStatus(flavor=AppliedFlavor(applied=stands)),
    )


def test_a_server_that_asks_for_what_it_does_not_get_still_counts_on_the_flavor_it_has():
    clock = SystemClock()
    informers = InformerFactory(MemoryApi(MemoryCluster(clock), clock, "operator"), clock, system_rng())
    cache = ClusterCache(informers)
    informers.observe(DEVSERVERFLAVORS, SCARCE)
    informers.observe(DEVSERVERS, a_server_of_ann("first", asks="nope", stands="scarce"))
    informers.observe(DEVSERVERS, a_server_of_ann("second", asks="scarce", stands="scarce"))

    first, second = (cache.observed(ObjectKey("dev-ann", name)) for name in ("first", "second"))
    assert first is not None
    assert second is not None
    assert (first.flavor, first.standing, second.standing) == (None, SCARCE, None)
    assert second.ahead == 1
    assert list(cache.on_flavor(SCARCE)) == [ObjectKey("dev-ann", "first"), ObjectKey("dev-ann", "second")]
    assert list(cache.competing_servers(first.server)) == [ObjectKey("dev-ann", "second")]
