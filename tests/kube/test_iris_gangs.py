"""Gangs of Pods and a real Kueue: a gang gets its quota whole, and gives it back when it is over."""

import os
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.simulated import SimulatedNodeGroup
from neorion.drydock.testing import namespace
from neorion.iris.adapters.runtimes.container.engine import ContainerSpec, ContainerState, ContainerStatus
from neorion.iris.adapters.runtimes.container.gang import Gang
from neorion.iris.adapters.runtimes.kubernetes import PodEngine, PodSettings
from neorion.iris.model import AttemptId, Resources
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.kube import Kind, KubeObject
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.core import POD
from tests.kube.guard_patience import allowed

pytestmark = [pytest.mark.anyio, pytest.mark.needs("drydock"), pytest.mark.timeout(300)]

IDS = SystemIds()
CLOCK = SystemClock()
PATIENCE_S = 90
LOOK_EVERY = Duration.of(ms=100)
SIZE = 3
WORKLOAD = Kind(KubeObject, "Workload", "workloads", "kueue.x-k8s.io", "v1beta2")


@pytest.fixture(scope="module")
def cluster_with_kueue(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    manager = ClusterManager.of({**os.environ, "XDG_STATE_HOME": str(tmp_path_factory.mktemp("gangs"))})
    try:
        yield anyio.run(manager.up, "gangs", ClusterOptions((SimulatedNodeGroup(2),), kueue=True))
    finally:
        anyio.run(manager.down, "gangs")


def _queue(plural: str, kind: str, name: str, spec: dict[str, Any], space: str = "") -> tuple[Any, Any]:
    known = Kind(KubeObject, kind, plural, "kueue.x-k8s.io", "v1beta2", namespaced=bool(space)).raw
    return known, {"metadata": {"name": name, "namespace": space}, "spec": spec}


@pytest.fixture
async def room(cluster_with_kueue: Cluster) -> AsyncGenerator[tuple[Client, str]]:
    """A namespace whose queue has room for one gang and a half."""
    quota = [{"name": "cpu", "nominalQuota": "4500m"}]
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "any", "resources": quota}]}
    async with (
        connect(read_kubeconfig([cluster_with_kueue.kubeconfig]).cluster(), "test") as client,
        namespace(cluster_with_kueue) as name,
    ):
        for kind, body in (
            _queue("resourceflavors", "ResourceFlavor", "any", {}),
            _queue(
                "clusterqueues", "ClusterQueue", "all", {"namespaceSelector": {}, "resourceGroups": [group]}
            ),
            _queue("localqueues", "LocalQueue", "team", {"clusterQueue": "all"}, name),
        ):
            await allowed(lambda kind=kind, body=body: client.apply(kind, body, "test"))
        yield client, name


def gang() -> list[ContainerSpec]:
    members = [IDS.new(AttemptId) for _ in range(SIZE)]
    together = Gang(str(members[0]), SIZE)
    return [ContainerSpec(one, Resources(cpu_milli=1000), (), {}, together) for one in members]


class Watcher:
    """What the engine tells of its containers."""

    def __init__(self, engine: PodEngine) -> None:
        self._engine = engine
        self._seen: dict[AttemptId, ContainerStatus] = {}

    async def run(self) -> None:
        async with aclosing(self._engine.changes()) as changes:
            async for batch in changes:
                self._seen.update({one.attempt: one for one in batch})

    async def until(self, members: list[ContainerSpec], holds: Callable[[ContainerStatus], bool]) -> None:
        while not all(one.attempt in self._seen and holds(self._seen[one.attempt]) for one in members):
            await CLOCK.sleep(LOOK_EVERY)

    async def create(self, *members: ContainerSpec) -> None:
        for one in members:
            await self._engine.create(one)

    async def remove(self, *members: ContainerSpec) -> None:
        for one in members:
            await self._engine.remove(one.attempt, Duration.of(seconds=1))


def runs(status: ContainerStatus) -> bool:
    return status.state is ContainerState.RUNNING


def is_gated(status: ContainerStatus) -> bool:
    return status.state is ContainerState.WAITING and "SchedulingGated" in status.message


async def test_a_gang_gets_its_quota_whole_and_the_next_one_after_it(room: tuple[Client, str]):
    api, space = room
    settings = PodSettings(space, "worker", "task:1", queue="team")
    watcher = Watcher(PodEngine(settings, api, CLOCK, system_rng()))
    first, second, third = gang(), gang(), gang()
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(watcher.run)
            # Not whole yet: none of it runs.
            await watcher.create(*first[:-1])
            await watcher.until(first[:-1], is_gated)
            await watcher.create(first[-1])
            await watcher.until(first, runs)
            await watcher.create(*second)
            await watcher.until(second, is_gated)
            # What a gang leaves is the next one's.
            await watcher.remove(*first)
            await watcher.until(second, runs)
            # One that is stopped before it is admitted leaves nothing either.
            await watcher.create(*third)
            await watcher.until(third, is_gated)
            await watcher.remove(*second, *third)
            while (await api.list(POD, space)).items or (await api.list(WORKLOAD, space)).items:
                await CLOCK.sleep(LOOK_EVERY)
            group.cancel_scope.cancel()
