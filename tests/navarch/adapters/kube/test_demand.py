"""What waits in a cluster, as the queue autoscaler sees it."""

from typing import Any

import anyio
import pytest

from neorion.capacity.node import marks
from neorion.keel.base import Retry
from neorion.keel.clock import SystemClock, seeded_rng
from neorion.keel.kube.control import InformerFactory
from neorion.keel.kube.core import POD
from neorion.keel.kube.testing import MemoryApi, MemoryCluster
from neorion.navarch.adapters.kube import KubeDemand
from neorion.navarch.adapters.kube.kueue_types import WORKLOAD
from neorion.navarch.model import Demand

pytestmark = pytest.mark.anyio


def pod(name: str, gpus: int = 1, node: str = "", labels: dict[str, str] | None = None, **spec: Any):
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "labels": {marks.POOL: "training"} | (labels or {}),
        },
        "spec": {"containers": [container], **({"nodeName": node} if node else {}), **spec},
    }


def workload(name: str, count: int, gpus: int, *conditions: str):
    limits = {"nvidia.com/gpu": str(gpus)}
    template = {
        "metadata": {"labels": {marks.POOL: "training"}},
        "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]},
    }
    return (
        {
            "metadata": {"name": name, "namespace": "team"},
            "spec": {"podSets": [{"name": "main", "count": count, "template": template}]},
        },
        {"status": {"conditions": [{"type": one, "status": "True"} for one in conditions]}},
    )


class Cluster:
    def __init__(self) -> None:
        self.clock = SystemClock()
        self.api = MemoryApi(MemoryCluster(self.clock), self.clock)

    async def pods(self, *pods: Any, phase: str = "") -> None:
        for one in pods:
            await self.api.create(POD, one)
            if phase:
                body = {**one, "status": {"phase": phase}}
                await self.api.replace(POD.raw, body, "status")

    async def workload(self, *parts: Any) -> None:
        body, status = parts
        await self.api.create(WORKLOAD.raw, body)
        await self.api.replace(WORKLOAD.raw, {**body, **status}, "status")

    async def demand(self, pool: str = "training") -> Demand:
        informers = InformerFactory(self.api, self.clock, seeded_rng(1))
        source = KubeDemand(informers, kueue=True)
        found = Demand()
        async with anyio.create_task_group() as group:
            group.start_soon(informers.run)
            await informers.wait_synced()
            found = await source.demand(pool)
            group.cancel_scope.cancel()
        return found


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


async def test_pods_wait_until_they_have_a_node(cluster: Cluster):
    await cluster.pods(pod("a", 2), pod("b", 4), pod("c", 1, node="n1"))
    assert await cluster.demand() == Demand(pending=2, running=1, busy={"n1": 1}, waiting=((2,), (4,)))


async def test_what_runs_holds_the_gpus_of_its_node(cluster: Cluster):
    await cluster.pods(pod("a", 2, node="n1"), pod("b", 4, node="n1"), pod("c", 8, node="n2"))
    await cluster.pods(pod("no-gpu", 0, node="n3"))
    assert await cluster.demand() == Demand(pending=0, running=4, busy={"n1": 6, "n2": 8})


async def test_an_empty_queue_is_nothing_and_not_unknown(cluster: Cluster):
    assert await cluster.demand("inference") == Demand(pending=0, running=0)


async def test_what_has_ended_and_what_waits_for_somebody_else_is_no_demand(cluster: Cluster):
    await cluster.pods(pod("done"), phase="Succeeded")
    await cluster.pods(pod("gated", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]))
    await cluster.pods(pod("other", labels={marks.POOL: "inference"}))
    assert (await cluster.demand()).pending == 0


async def test_a_pod_that_is_moved_is_counted_once(cluster: Cluster):
    await cluster.pods(pod("old", 8, node="n1"), pod("new", 8))
    await cluster.api.delete(POD, "old", "team")
    found = await cluster.demand()
    assert (found.pending, found.running) == (1, 0)


async def test_pods_of_a_gang_wait_together(cluster: Cluster):
    group = {"scheduling.x-k8s.io/pod-group": "big"}
    await cluster.pods(*(pod(f"big-{number}", 8, labels=group) for number in range(3)))
    small = {"jobset.sigs.k8s.io/jobset-name": "small"}
    await cluster.pods(*(pod(f"small-{number}", 2, labels=small) for number in range(2)), pod("alone", 1))
    assert sorted((await cluster.demand()).waiting) == [(1,), (2, 2), (8, 8, 8)]


async def test_a_workload_counts_from_its_quota_until_its_pods_are_there(cluster: Cluster):
    await cluster.workload(*workload("waits-for-quota", 4, 8))
    await cluster.workload(*workload("waits-for-nodes", 2, 8, "QuotaReserved"))
    await cluster.workload(*workload("has-pods", 4, 8, "QuotaReserved", "Admitted"))
    await cluster.workload(*workload("over", 4, 8, "QuotaReserved", "Finished"))
    assert await cluster.demand() == Demand(pending=2, running=0, waiting=((8, 8),))


async def test_what_was_not_seen_yet_is_unknown(cluster: Cluster):
    source = KubeDemand(InformerFactory(cluster.api, cluster.clock, seeded_rng(1)), kueue=False)
    with pytest.raises(Retry) as refused:
        await source.demand("training")
    assert refused.value.code == "navarch.queue_unknown"
