"""The place of a server in its queue, and who holds the quota."""

from typing import Any

import pytest

from neorion.devservers.controllers.queue import QueueCache
from neorion.devservers.decide.manifests import OwnerIdentity
from neorion.devservers.decide.quota import QueueEntry, workload_manifest
from neorion.devservers.model import DevServerSpec, QueueRef
from neorion.devservers.model.kube_types import DevServerObject
from neorion.devservers.model.kueue import CLUSTER_QUEUES, LOCAL_QUEUES, WORKLOADS
from neorion.devservers.testing import FLAVOR, a_flavor, a_server
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube import MergePatch
from neorion.keel.kube.control import InformerFactory
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

pytestmark = pytest.mark.anyio

SERVER = a_server(DevServerSpec(flavor="cpu-small", queue=QueueRef(name="team")))


class Cluster:
    """A cluster in memory, whose changes reach the caches at once."""

    def __init__(self) -> None:
        clock = SystemClock()
        self.api = MemoryApi(MemoryCluster(clock), clock, "test")
        self.informers = InformerFactory(self.api, clock, system_rng())
        self.queues = QueueCache(self.informers)

    async def put(self, kind: Any, name: str, namespace: str = "", **body: Any) -> None:
        await self.apply(kind, {"metadata": {"name": name, "namespace": namespace}, **body})

    async def apply(self, kind: Any, manifest: dict[str, Any]) -> None:
        self.informers.observe(kind, await self.api.apply(kind, manifest, "test"))

    async def request(self, namespace: str, name: str, priority: int = 0, **status: Any) -> None:
        await self.put(WORKLOADS, name, namespace, spec={"queueName": "team", "priority": priority})
        patch = MergePatch({"status": status})
        self.informers.observe(WORKLOADS, await self.api.patch(WORKLOADS, name, patch, namespace, "status"))

    def entry(self, server: DevServerObject = SERVER) -> QueueEntry:
        found = self.queues.entry(server, a_flavor())
        assert found is not None
        return found


@pytest.fixture
async def cluster() -> Cluster:
    """Two teams with a queue each, which lend to each other, and a third one alone."""
    made = Cluster()
    for team, cohort in (("ann", "all"), ("bob", "all"), ("eve", "")):
        await made.put(CLUSTER_QUEUES, team, spec={"cohortName": cohort})
        await made.put(LOCAL_QUEUES, "team", f"dev-{team}", spec={"clusterQueue": team})
    meta = SERVER.meta
    own = workload_manifest(OwnerIdentity(meta.name, meta.namespace, meta.uid), SERVER.spec, FLAVOR)
    await made.apply(WORKLOADS, own)
    return made


def reserved(queue: str) -> dict[str, Any]:
    return {
        "admission": {"clusterQueue": queue},
        "conditions": [{"type": kind, "status": "True"} for kind in ("QuotaReserved", "Admitted")],
    }


async def test_the_place_counts_those_before_it_as_they_come_and_go(cluster: Cluster):
    assert (cluster.entry().place, cluster.entry().waiting) == (1, 1)
    await cluster.request("dev-ann", "urgent", priority=5)
    await cluster.request("dev-ann", "later", priority=-5)
    await cluster.request("dev-bob", "elsewhere", priority=5)
    assert (cluster.entry().place, cluster.entry().waiting) == (2, 3)
    await cluster.request("dev-ann", "urgent", priority=5, **reserved("ann"))
    assert (cluster.entry().place, cluster.entry().waiting) == (1, 2)
    await cluster.request("dev-ann", "later", priority=9)
    assert (cluster.entry().place, cluster.entry().waiting) == (2, 2)


async def test_holders_of_the_quota_are_those_of_the_cohort(cluster: Cluster):
    await cluster.request("dev-ann", "first", **reserved("ann"))
    await cluster.request("dev-bob", "borrower", **reserved("bob"))
    await cluster.request("dev-eve", "stranger", **reserved("eve"))
    assert set(cluster.entry().holders) == {"dev-ann/first", "dev-bob/borrower"}
