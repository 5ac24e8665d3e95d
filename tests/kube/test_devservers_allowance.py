"""A user gets no more GPUs than they were given, whatever these are called."""

import pytest

from neorion.devservers.adapters.install import GUARDS, Installer, Overlay, bundle
from neorion.devservers.adapters.users import Allowance, Users
from neorion.devservers.model.objects import FLAVORS
from neorion.drydock.cluster import Cluster
from neorion.keel.base import Duration
from neorion.keel.kube import Merge
from neorion.keel.kube.client import connect, read_kubeconfig
from neorion.keel.kube.core import NODE, POD
from tests.kube import guard_rows as rows
from tests.kube.guard_patience import allowed, refused

pytestmark = pytest.mark.anyio

LEAST = tuple(
    one for one in bundle(Overlay.LOCAL) if one["kind"] == "CustomResourceDefinition" or one["kind"] in GUARDS
)
SLICE, OTHER = "nvidia.com/mig-1g.10gb", "amd.com/gpu"


async def test_slices_and_other_vendors_count(own_cluster: Cluster):
    async with connect(read_kubeconfig([own_cluster.kubeconfig]).cluster(), "test") as client:
        await Installer(client).install(LEAST)
        asked = {"requests": {SLICE: "1"}, "limits": {SLICE: "1"}}
        await client.create(FLAVORS, {"metadata": {"name": "slice"}, "spec": {"resources": asked}})
        await client.create(NODE, {"metadata": {"name": "other"}})
        has = Merge({"status": {"capacity": {OTHER: "8"}, "allocatable": {OTHER: "8"}}})
        await client.patch(NODE, "other", has, subresource="status")
        await Users(client).add("ann", Allowance(gpus=2), "devctl")
        await Users(client).wait_counted("ann", Duration.of(minutes=2))
        ann = client.acting_as(*rows.account("dev-ann", "user-ann")).rehearsing()
        for device in ("nvidia.com/gpu", SLICE, OTHER):
            few, many = ({"resources": {"limits": {device: number}}} for number in ("2", "3"))
            await allowed(lambda few=few: ann.create(POD.raw, rows.pod(few)("dev-ann")))
            await refused(lambda many=many: ann.create(POD.raw, rows.pod(many)("dev-ann")), "exceeded quota")
