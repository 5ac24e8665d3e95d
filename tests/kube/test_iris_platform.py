"""The contract of platforms on a real API server, with drydock's simulator of CoreWeave on the other side.

Only time is the test's own: nodes boot when its clock says so.
"""

import os
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Final

import anyio
import pytest

from neorion.capacity.coreweave import NODE_POOL
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.coreweave import FAULT, Fault
from neorion.drydock.simulated import BOOT_TIME
from neorion.drydock.testing import namespace
from neorion.iris.adapters.platforms.fault_injection import FaultProfile
from neorion.iris.adapters.platforms.kubernetes import (
    GroupTemplate,
    KubernetesPlatform,
    KubernetesSettings,
    PoolTemplate,
)
from neorion.iris.model import SliceId
from neorion.keel.base import Duration, Instant, NotFound
from neorion.keel.clock import SystemClock, seeded_rng
from neorion.keel.kube import DeleteOptions, Kind, KubeObject, Manifest, MergePatch, ObjectKey, Selector
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.control import Controller, InformerFactory, Operator, self_key
from neorion.keel.kube.core import NODE, POD
from tests.contracts.test_platform import *  # noqa: F403 -- its tests run here, too
from tests.contracts.test_platform import Breakable, Stage
from tests.iris.kubernetes_stage import GROUP, SLICE, SteppedClock

pytestmark = [pytest.mark.anyio, pytest.mark.needs("drydock"), pytest.mark.timeout(300)]

NEVER: Final = "10000h"


class RealStage:
    """One namespace of a cluster. What the test wants to go wrong is ordered from the simulator when a pool is made."""

    def __init__(self, api: Client, namespace: str) -> None:
        self.clock = SteppedClock()
        self.clock.moved = self._look_again
        self.api = api
        self.namespace = namespace
        self._behaviours: dict[str, FaultProfile] = {}
        self._ordered: dict[str, Instant] = {}
        self._stuck: set[str] = set()
        self._lost: set[str] = set()
        informers = InformerFactory(api, SystemClock(), seeded_rng(1))
        self._nodes = informers.of(NODE, "", Selector(labels=f"{SLICE},iris-namespace={namespace}"))
        self._boots = Controller("boots", self._reconcile, self.clock, seeded_rng(2), workers=1)
        self._boots.watch(self._nodes, self_key)
        self._operator = Operator(informers, [self._boots])

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        async with anyio.create_task_group() as group:
            group.start_soon(self._operator.run, anyio.Event())
            yield
            group.cancel_scope.cancel()
        async with self.open() as platform, anyio.create_task_group() as group:
            group.start_soon(platform.shutdown)
            group.start_soon(self._end_pods)
            while await platform.list_all_slices():
                await SystemClock().sleep(Duration.of(ms=50))
            group.cancel_scope.cancel()

    @asynccontextmanager
    async def open(
        self, behaviours: Mapping[str, FaultProfile] | None = None
    ) -> AsyncGenerator[Breakable, None]:
        self._behaviours |= behaviours or {}
        template = GroupTemplate(PoolTemplate("gd-8xh100ib-i128"))
        settings = KubernetesSettings(
            self.namespace, "here:1", "worker:1", dict.fromkeys(("h100", "cpu"), template)
        )
        async with _Platform(self, settings) as platform:
            yield platform

    async def lose(self, piece: SliceId) -> None:
        """As by a power cut: the node is gone, and the garbage collector of Pods takes what was on it."""
        pods = (await self.api.list(POD, self.namespace, Selector(labels=f"{SLICE}={piece}"))).items
        lost = min((pod for pod in pods if pod.spec.node_name), key=lambda pod: pod.meta.name)
        self._lost.add(str(piece))
        await self.api.delete(NODE, lost.spec.node_name)
        with suppress(NotFound):
            how = DeleteOptions(grace=Duration(0))
            await self.api.delete(POD, lost.meta.name, self.namespace, how)

    def judge(self, body: dict[str, Any], there: int) -> None:
        """What the simulator is to do with a new pool, when there are so many of its group."""
        labels, notes = body["metadata"]["labels"], body["metadata"]["annotations"]
        group, piece = labels[GROUP], labels[SLICE]
        now = self._behaviours.get(group, FaultProfile())
        self._ordered[piece] = self.clock.now()
        if now.quota is not None and there >= now.quota:
            notes[FAULT] = Fault.QUOTA.value
        elif now.no_capacity:
            self._behaviours[group] = replace(now, no_capacity=now.no_capacity - 1)
            notes[FAULT] = Fault.NO_CAPACITY.value
        elif now.stuck:
            self._behaviours[group] = replace(now, stuck=now.stuck - 1)
            self._stuck.add(piece)
        if now.boot_delay or piece in self._stuck:
            notes[BOOT_TIME] = NEVER

    def _look_again(self) -> None:
        for key in list(self._nodes.keys()):
            self._boots.wake(key)

    async def _reconcile(self, key: ObjectKey) -> Duration | None:
        node = self._nodes.get(key)
        piece = node.meta.labels[SLICE] if node is not None else ""
        if node is None or piece in self._stuck or piece not in self._ordered:
            return None
        behaviour = self._behaviours.get(node.meta.labels[GROUP], FaultProfile())
        age = self.clock.now().since(self._ordered[piece])
        if not behaviour.boot_delay - age and node.meta.annotations.get(BOOT_TIME) == NEVER:
            patch = MergePatch({"metadata": {"annotations": {BOOT_TIME: "0s"}}})
            await self.api.patch(NODE, node.meta.name, patch)
        after = behaviour.lost_after
        if after is not None and piece not in self._lost and age >= behaviour.boot_delay + after:
            await self.lose(SliceId(piece))
        return None

    async def _end_pods(self) -> None:
        """Nobody else ends those of lost nodes."""
        while True:
            for pod in (await self.api.list(POD, self.namespace)).items:
                if pod.meta.deleted is not None:
                    with suppress(NotFound):
                        await self.api.delete(
                            POD, pod.meta.name, self.namespace, DeleteOptions(grace=Duration(0))
                        )
            await SystemClock().sleep(Duration.of(ms=100))


class _Judged:
    """The API as the platform sees it: new pools carry what the test wants of the simulator."""

    def __init__(self, stage: RealStage) -> None:
        self._stage = stage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stage.api, name)

    async def create(self, kind: Kind[KubeObject], thing: Manifest) -> KubeObject:
        if kind.name == NODE_POOL.name:
            body: Any = thing
            labels = body["metadata"]["labels"]
            mine = f"{GROUP}={labels[GROUP]},iris-namespace={self._stage.namespace}"
            there = await self._stage.api.list(NODE_POOL, select=Selector(labels=mine))
            self._stage.judge(body, sum(pool.meta.deleted is None for pool in there.items))
        return await self._stage.api.create(kind, thing)


class _Platform(KubernetesPlatform):
    """One whose machines can be taken away."""

    def __init__(self, stage: RealStage, settings: KubernetesSettings) -> None:
        api: Any = _Judged(stage)
        super().__init__(settings, api, stage.clock, seeded_rng(3))
        self._stage = stage

    async def lose(self, piece: SliceId) -> None:
        await self._stage.lose(piece)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    yard = ClusterManager.of({**os.environ, "XDG_STATE_HOME": str(tmp_path_factory.mktemp("platforms"))})
    try:
        yield anyio.run(yard.up, "platforms", ClusterOptions(coreweave=True))
    finally:
        anyio.run(yard.down, "platforms")


@pytest.fixture
async def stage(cloud: Cluster) -> AsyncGenerator[Stage]:
    async with (
        namespace(cloud) as name,
        connect(read_kubeconfig([cloud.kubeconfig]).cluster(), "iris") as api,
    ):
        made = RealStage(api, name)
        async with made.running():
            yield made


@pytest.fixture
async def buying(stage: Stage) -> Stage:
    return stage
