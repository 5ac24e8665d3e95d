"""The queue of a real Kueue as navarch reads it: what has its quota and waits for nodes is a pool's demand, whole."""

import json
import os
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager

import anyio
import pytest

from neorion.capacity.node import marks
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.simulated import SimulatedNodeGroup
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube.client import connect, read_kubeconfig
from neorion.keel.kube.control import InformerFactory
from neorion.navarch.adapters.kube import KubeDemand, has_kueue
from neorion.navarch.adapters.kube.kueue_types import WORKLOAD
from neorion.navarch.model import Demand
from tests.drydock.workloads import apply, job, queue

pytestmark = [pytest.mark.anyio, pytest.mark.needs("drydock"), pytest.mark.timeout(480)]

CLOCK = SystemClock()
# The mirrors of a queue are read; they tell nobody when they change.
_LOOK = Duration.of(ms=100)
_WHEN = "2026-01-01T00:00:00Z"
# Somebody who says when there are machines, as provisioning does; here it is the test.
CHECK = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "AdmissionCheck",
    "metadata": {"name": "machines"},
    "spec": {"controllerName": "neorion.dev/test"},
}
ACTIVE = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": _WHEN}
READY = {"name": "machines", "state": "Ready", "message": "there are", "lastTransitionTime": _WHEN}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    yard = ClusterManager.of({**os.environ, "XDG_STATE_HOME": str(tmp_path_factory.mktemp("queue"))})
    try:
        yield anyio.run(
            yard.up, "queue", ClusterOptions(simulated=(SimulatedNodeGroup(2, "h100x8"),), kueue=True)
        )
    finally:
        anyio.run(yard.down, "queue")


@asynccontextmanager
async def demand_in(cluster: Cluster) -> AsyncGenerator[KubeDemand]:
    async with connect(read_kubeconfig([cluster.kubeconfig]).cluster(), "test/1") as api:
        informers = InformerFactory(api, CLOCK, system_rng())
        source = KubeDemand(informers, kueue=await has_kueue(api))
        async with anyio.create_task_group() as group:
            group.start_soon(informers.run)
            await informers.wait_synced()
            yield source
            group.cancel_scope.cancel()


async def seen(source: KubeDemand, expected: Demand) -> None:
    found = Demand()
    with anyio.move_on_after(120):
        while (found := await source.demand("training")) != expected:
            await CLOCK.sleep(_LOOK)
    assert found == expected


async def status(cluster: Cluster, what: str, **fields: object) -> None:
    said = json.dumps({"status": fields})
    await cluster.kubectl("patch", what, "--subresource=status", "--type=merge", "-p", said)


async def test_a_workload_is_demand_from_its_quota_until_its_pods_are_there(fleet: Cluster):
    flavor, shares, local = queue("training", gpus=16)
    shares["spec"]["admissionChecksStrategy"] = {"admissionChecks": [{"name": "machines"}]}
    await apply(fleet, CHECK, flavor, shares, local)
    await status(fleet, "admissioncheck/machines", conditions=[ACTIVE])
    pair, late = job("pair", "training", "1h"), job("late", "training", "1h")
    for one in (pair, late):
        one["spec"] |= {"parallelism": 2, "completions": 2}
        one["spec"]["template"]["metadata"]["labels"] = {marks.POOL: "training"}
    async with demand_in(fleet) as source:
        await apply(fleet, pair)
        await seen(source, Demand(pending=2, running=0, waiting=((8, 8),)))
        # All quota is taken: no node would help this one.
        await apply(fleet, late)
        async with connect(read_kubeconfig([fleet.kubeconfig]).cluster(), "test/1") as api:
            while len(found := (await api.list(WORKLOAD, "default")).items) < 2:
                await CLOCK.sleep(_LOOK)
        (waits,) = [one.meta.name for one in found if one.meta.name.startswith("job-pair")]
        await seen(source, Demand(pending=2, running=0, waiting=((8, 8),)))

        await status(fleet, f"workload/{waits}", admissionChecks=[READY])
        busy = {"h100x8-0000": 8, "h100x8-0001": 8}
        await seen(source, Demand(pending=0, running=2, busy=busy))
