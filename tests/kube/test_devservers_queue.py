"""What waits in a queue of Kueue starts in users' namespaces too, with all guards in place."""

import os
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import anyio
import pytest

from neorion.devservers.adapters.install import Overlay, bundle
from neorion.devservers.adapters.users import TenantManager, UserRequest
from neorion.devservers.model.kube_types import DEVSERVERS, USERS
from neorion.devservers.model.kueue import LOCAL_QUEUES
from neorion.devservers.model.user import UserConditionType
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.keel.base import Duration
from neorion.keel.kube import Kind, KubeObject, MergePatch
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.core import DEPLOYMENT, POD, Pod
from tests.kube import guard_rows as rows
from tests.kube.guard_patience import allowed, refused
from tests.kube.new_kinds import install
from tests.kube.user_controller import PATIENCE, provision, provisioning

pytestmark = [pytest.mark.anyio, pytest.mark.needs("drydock"), pytest.mark.timeout(300)]

NS = "dev-ann"
SYSTEM = "devservers-system"
MANAGED = "kueue.x-k8s.io/managed"
QUEUE = {"kueue.x-k8s.io/queue-name": "team"}
_AMOUNTS = [{"name": name, "nominalQuota": "20Gi"} for name in ("cpu", "memory")]
_GROUP = {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "any", "resources": _AMOUNTS}]}


@pytest.fixture(scope="module")
def queued(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    """A control plane with Kueue."""
    yard = ClusterManager.of({**os.environ, "XDG_STATE_HOME": str(tmp_path_factory.mktemp("queued"))})
    try:
        yield anyio.run(yard.up, "queued", ClusterOptions(kueue=True))
    finally:
        anyio.run(yard.down, "queued")


@pytest.fixture
async def admin(queued: Cluster) -> AsyncGenerator[Client]:
    """Of a cluster with the guards, a user and a queue of theirs."""
    async with connect(read_kubeconfig([queued.kubeconfig]).cluster(), "test") as client:
        await install(queued, client, bundle(Overlay.LOCAL))
        await provision(client, "ann")
        for kind, plural, namespace, name, spec in (
            ("ResourceFlavor", "resourceflavors", "", "any", {}),
            (
                "ClusterQueue",
                "clusterqueues",
                "",
                "all",
                {"namespaceSelector": {}, "resourceGroups": [_GROUP]},
            ),
            ("LocalQueue", "localqueues", NS, "team", {"clusterQueue": "all"}),
        ):
            known = Kind(
                KubeObject, kind, plural, "kueue.x-k8s.io", "v1beta2", namespaced=bool(namespace)
            ).raw
            body: dict[str, Any] = {"metadata": {"name": name, "namespace": namespace}, "spec": spec}
            await allowed(lambda known=known, body=body: client.apply(known, body, "test"))
        yield client


async def until_released(client: Client, of: Callable[[Pod], bool]) -> None:
    """Kueue has taken the pod up, and let it go."""
    with anyio.fail_after(120):
        while not any(
            of(pod) and MANAGED in pod.meta.labels and not pod.spec.scheduling_gates
            for pod in (await client.list(POD, NS)).items
        ):
            await client.transport.clock.sleep(Duration.of(ms=100))


async def test_a_users_pod_waits_for_its_turn_gets_it_and_can_be_deleted(admin: Client):
    ann = admin.acting_as(*rows.account(NS, "user-ann"))
    body = rows.pod()(NS)
    body["metadata"] |= {"name": "plain", "labels": QUEUE}
    await allowed(lambda: ann.create(POD.raw, body))
    await until_released(admin, lambda pod: pod.meta.name == "plain")
    # Kueue would not find it again, and nobody else takes its finalizer away.
    hidden = MergePatch({"metadata": {"labels": {MANAGED: None}}})
    await refused(lambda: ann.patch(POD, "plain", hidden, NS), "users add no finalizers")
    await ann.delete(POD, "plain", NS)
    with anyio.fail_after(120):
        while any(pod.meta.name == "plain" for pod in (await admin.list(POD, NS)).items):
            await admin.transport.clock.sleep(Duration.of(ms=100))


async def test_the_pod_of_a_server_gets_its_turn(admin: Client):
    made = await admin.create(
        DEVSERVERS, {"metadata": {"name": "box", "namespace": NS}, "spec": {"flavor": "any"}}
    )
    operator = admin.acting_as(*rows.account("devservers-system", "devservers-operator"))
    body = rows.deployment({rows.SERVER: "box", **QUEUE})(NS)
    body["spec"]["replicas"] = 1
    owner = {**rows.OWNER, "uid": made.meta.uid}
    body["metadata"] |= {"name": "box", "labels": {rows.SERVER: "box", **QUEUE}, "ownerReferences": [owner]}
    await allowed(lambda: operator.create(DEPLOYMENT.raw, body))
    await until_released(admin, lambda pod: pod.meta.labels.get(rows.SERVER) == "box")


async def test_a_user_gets_the_queue_of_their_team_by_the_rights_of_the_user_controller(admin: Client):
    controller = admin.acting_as(*rows.account(SYSTEM, "devservers-user-controller"))
    users = TenantManager(admin)

    async def until_told(status: str | None) -> None:
        """The condition of the queue has this status, or there is none."""
        with anyio.fail_after(120):
            while True:
                conditions = {
                    one.type: one.status for one in (await admin.get(USERS, "bob")).status.conditions
                }
                if conditions.get(UserConditionType.QUEUE) == status:
                    return
                await admin.transport.clock.sleep(Duration.of(ms=100))

    async with provisioning(controller, SYSTEM):
        await users.add("bob", UserRequest(cluster_queue="all"))
        await users.wait_provisioned("bob", PATIENCE)
        await until_told("True")
        [queue] = (await admin.list(LOCAL_QUEUES, "dev-bob")).items
        assert (queue.meta.name, queue.spec.cluster_queue) == ("team", "all")
        # A quota that is not there yet is told; Kueue never changes a queue, so another one is made.
        await users.add("bob", UserRequest(cluster_queue="missing"))
        await until_told("False")
        await users.add("bob", UserRequest(cluster_queue=""))
        await until_told(None)
        assert (await admin.list(LOCAL_QUEUES, "dev-bob")).items == []
