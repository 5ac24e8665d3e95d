"""A user gets no more GPUs than they were given, whatever these are called."""

import pytest

from neorion.devservers.adapters.install import GUARDS, Overlay, bundle
from neorion.devservers.model.kube_types import DEVSERVERFLAVORS
from neorion.devservers.model.user import UserQuota
from neorion.drydock.cluster import Cluster
from neorion.keel.kube import MergePatch
from neorion.keel.kube.client import connect, read_kubeconfig
from neorion.keel.kube.core import NODE, POD
from tests.kube import guard_rows as rows
from tests.kube.guard_patience import allowed, refused
from tests.kube.new_kinds import install
from tests.kube.user_controller import provision, provisioning

pytestmark = pytest.mark.anyio

LEAST = tuple(
    one for one in bundle(Overlay.LOCAL) if one["kind"] == "CustomResourceDefinition" or one["kind"] in GUARDS
)
SLICE, OTHER = "nvidia.com/mig-1g.10gb", "amd.com/gpu"


async def test_slices_and_other_vendors_count(own_cluster: Cluster):
    async with connect(read_kubeconfig([own_cluster.kubeconfig]).cluster(), "test") as client:
        await install(own_cluster, client, LEAST)
        asked = {"requests": {SLICE: "1"}, "limits": {SLICE: "1"}}
        await client.create(DEVSERVERFLAVORS, {"metadata": {"name": "slice"}, "spec": {"resources": asked}})
        await client.create(NODE, {"metadata": {"name": "other"}})
        has = MergePatch({"status": {"capacity": {OTHER: "8"}, "allocatable": {OTHER: "8"}}})
        await client.patch(NODE, "other", has, subresource="status")
        await provision(client, "ann", UserQuota(gpus=2))
        ann = client.acting_as(*rows.account("dev-ann", "user-ann")).rehearsing()
        for device in ("nvidia.com/gpu", SLICE, OTHER):
            few, many = ({"resources": {"limits": {device: number}}} for number in ("2", "3"))
            await allowed(lambda few=few: ann.create(POD.raw, rows.pod(few)("dev-ann")))
            await refused(lambda many=many: ann.create(POD.raw, rows.pod(many)("dev-ann")), "exceeded quota")


async def test_a_kind_that_came_later_is_refused_until_it_is_counted(own_cluster: Cluster):
    later = "gpu.intel.com/i915"
    async with connect(read_kubeconfig([own_cluster.kubeconfig]).cluster(), "test") as client:
        await install(own_cluster, client, LEAST)
        await provision(client, "bob", UserQuota(gpus=2, servers=1_000))
        bob = client.acting_as(*rows.account("dev-bob", "user-bob")).rehearsing()
        one, three = ({"resources": {"limits": {later: number}}} for number in ("1", "3"))
        await refused(lambda: bob.create(POD.raw, rows.pod(one)("dev-bob")), f"does not count {later} yet")
        inside = rows.pod(initContainers=[{"name": "first", "image": "busybox", **one}])
        await refused(lambda: bob.create(POD.raw, inside("dev-bob")), f"does not count {later} yet")
        await client.create(NODE, {"metadata": {"name": "later"}})
        has = MergePatch({"status": {"capacity": {later: "8"}, "allocatable": {later: "8"}}})
        await client.patch(NODE, "later", has, subresource="status")
        async with provisioning(client):
            # The user controller counts the new kind by itself.
            await allowed(lambda: bob.create(POD.raw, rows.pod(one)("dev-bob")))
        await refused(lambda: bob.create(POD.raw, rows.pod(three)("dev-bob")), "exceeded quota")
