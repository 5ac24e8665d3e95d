"""A user gets no more GPUs than they were given, whatever these are called."""

import pytest

from neorion.devservers.adapters.install import GUARDS, Installer, Outcome, Overlay, bundle
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


async def test_a_kind_that_came_later_is_refused_until_it_is_counted(own_cluster: Cluster):
    later = "gpu.intel.com/i915"
    async with connect(read_kubeconfig([own_cluster.kubeconfig]).cluster(), "test") as client:
        await Installer(client).install(LEAST)
        users = Users(client)
        await users.add("bob", Allowance(gpus=2, servers=1_000), "bastion")
        await users.wait_counted("bob", Duration.of(minutes=2))
        bob = client.acting_as(*rows.account("dev-bob", "user-bob")).rehearsing()
        one, three = ({"resources": {"limits": {later: number}}} for number in ("1", "3"))
        await refused(lambda: bob.create(POD.raw, rows.pod(one)("dev-bob")), f"does not count {later} yet")
        inside = rows.pod(initContainers=[{"name": "first", "image": "busybox", **one}])
        await refused(lambda: bob.create(POD.raw, inside("dev-bob")), f"does not count {later} yet")
        await client.create(NODE, {"metadata": {"name": "later"}})
        has = Merge({"status": {"capacity": {later: "8"}, "allocatable": {later: "8"}}})
        await client.patch(NODE, "later", has, subresource="status")
        steps = await users.refresh("bob")
        assert [step.kind for step in steps if step.outcome is not Outcome.UNCHANGED] == ["ResourceQuota"]
        await allowed(lambda: bob.create(POD.raw, rows.pod(one)("dev-bob")))
        await refused(lambda: bob.create(POD.raw, rows.pod(three)("dev-bob")), "exceeded quota")
