"""A Kubernetes platform on a cluster in memory: its nodes and Pods live by a clock that the test moves.

NodePools are served by drydock's simulator of CoreWeave; a simulated kubelet places Pods and runs them.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import anyio

from neorion.capacity.coreweave import NODE_POOL
from neorion.drydock.coreweave import FAULT, Fault
from neorion.drydock.coreweave.simulator import CoreWeaveSimulator
from neorion.iris.adapters.platforms.fault_injection import FaultProfile
from neorion.iris.adapters.platforms.kubernetes import (
    GroupTemplate,
    KubernetesPlatform,
    KubernetesSettings,
    PoolTemplate,
)
from neorion.iris.model import SliceId
from neorion.keel.base import Duration
from neorion.keel.clock import seeded_rng
from neorion.keel.kube import DeleteOptions, KubeApi, KubeObject, MergePatch, ObjectKey, instant
from neorion.keel.kube.control import Controller, InformerFactory, Operator, self_key
from neorion.keel.kube.core import NODE, POD, Node, Pod
from neorion.keel.kube.errors import Status, refusal
from neorion.keel.kube.testing import MemoryApi, MemoryCluster
from neorion.keel.kube.testing.cluster import WriteRequest
from tests.iris.manual_clock import ManualClock

NAMESPACE: Final = "iris"
GROUP: Final = "iris-scale-group"
SLICE: Final = "iris-slice-id"
_PLATFORM: Final = "iris"
_READY: Final = {"conditions": [{"type": "Ready", "status": "True"}]}
_RUNNING: Final = {"phase": "Running", **_READY}


class Breakable(KubernetesPlatform):
    """A platform whose machines can be taken away."""

    def __init__(self, stage: "KubernetesStage", settings: KubernetesSettings, api: KubeApi) -> None:
        super().__init__(settings, api, stage.clock, seeded_rng(1))
        self._stage = stage

    async def lose(self, piece: SliceId) -> None:
        await self._stage.lose(piece)


class SteppedClock(ManualClock):
    """Queues sleep by the real clock: when this one moves, whoever waits looks again."""

    def __init__(self) -> None:
        super().__init__()
        self.moved: Callable[[], None] = lambda: None

    def advance(self, span: Duration) -> None:
        super().advance(span)
        self.moved()


class KubernetesStage:
    """One cluster for as long as the test; `pools` says whether machines are bought."""

    def __init__(self, *, pools: bool) -> None:
        self.clock = SteppedClock()
        self.clock.moved = self._look_again
        self.cluster = MemoryCluster(self.clock)
        self.cluster.admit = self._admit
        self._pools = pools
        # Ends the simulator: what it said last of pools stays.
        self.stop_coreweave: Callable[[], None] = lambda: None
        self._behaviours: dict[str, FaultProfile] = {}
        self._stuck: set[str] = set()
        self._lost: set[str] = set()
        self._api = MemoryApi(self.cluster, self.clock, "kubelet")
        informers = InformerFactory(self._api, self.clock, seeded_rng(2))
        self._pods, self._nodes = informers.of(POD), informers.of(NODE)
        kubelet = self._kubelet = Controller("kubelet", self._reconcile, self.clock, seeded_rng(3), workers=1)
        kubelet.watch(self._pods, self_key)
        kubelet.watch(self._nodes, self._pods_of_slice)
        self._operator = Operator(informers, [kubelet])

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        player = CoreWeaveSimulator(
            MemoryApi(self.cluster, self.clock, "coreweave"), Duration(0), self.clock, seeded_rng(4)
        )
        coreweave = anyio.CancelScope()
        self.stop_coreweave = coreweave.cancel

        async def simulate() -> None:
            with coreweave:
                await player.operator.run(anyio.Event())

        async with anyio.create_task_group() as group:
            group.start_soon(self._operator.run, anyio.Event())
            if self._pools:
                group.start_soon(simulate)
            yield
            group.cancel_scope.cancel()

    @asynccontextmanager
    async def open(
        self,
        behaviours: Mapping[str, FaultProfile] | None = None,
        settings: Callable[[KubernetesSettings], KubernetesSettings] = lambda usual: usual,
    ) -> AsyncGenerator[Breakable, None]:
        self._behaviours |= behaviours or {}
        template = GroupTemplate(PoolTemplate("gd-8xh100ib-i128") if self._pools else None)
        usual = KubernetesSettings(NAMESPACE, "here:1", "worker:1", dict.fromkeys(("h100", "cpu"), template))
        async with Breakable(
            self, settings(usual), MemoryApi(self.cluster, self.clock, _PLATFORM)
        ) as platform:
            yield platform

    async def lose(self, piece: SliceId) -> None:
        """As by a power cut: the node is gone, and the garbage collector of Pods takes what was on it."""
        pods = [pod for pod in self._pods if pod.meta.labels.get(SLICE) == piece and pod.spec.node_name]
        lost = min(pods, key=lambda pod: pod.meta.name)
        self._lost.add(str(piece))
        await self._api.delete(NODE, lost.spec.node_name)
        await self._api.delete(POD, lost.meta.name, NAMESPACE, DeleteOptions(grace=Duration(0)))

    def _admit(self, request: WriteRequest) -> None:
        if request.user != _PLATFORM or request.verb != "create" or request.after is None:
            return
        kind = NODE_POOL if self._pools else POD
        if request.resource == kind.resource:
            self._judge(request.after)

    def _judge(self, body: dict[str, Any]) -> None:
        """As a ResourceQuota or CoreWeave would."""
        labels = body["metadata"]["labels"]
        group, piece = labels[GROUP], labels[SLICE]
        now = self._behaviours.get(group, FaultProfile())
        kind = NODE_POOL if self._pools else POD
        there = {
            entry.body["metadata"]["labels"][SLICE]
            for entry in self.cluster.entries(kind).values()
            if entry.body["metadata"]["labels"][GROUP] == group
        } - {piece}
        if now.quota is not None and len(there) >= now.quota:
            if not self._pools:
                raise refusal(Status(code=403, reason="Forbidden", message="exceeded quota: gpus"))
            body["metadata"]["annotations"] = {FAULT: Fault.QUOTA.value}
        elif now.no_capacity:
            self._behaviours[group] = replace(now, no_capacity=now.no_capacity - 1)
            body["metadata"]["annotations"] = {FAULT: Fault.NO_CAPACITY.value}
        elif now.stuck:
            self._behaviours[group] = replace(now, stuck=now.stuck - 1)
            self._stuck.add(piece)

    def _look_again(self) -> None:
        for key in list(self._pods.keys()):
            self._kubelet.wake(key)

    def _pods_of_slice(self, node: KubeObject) -> list[ObjectKey]:
        piece = node.meta.labels.get(SLICE, "")
        return [pod.meta.key for pod in self._pods if pod.meta.labels.get(SLICE) == piece]

    async def _reconcile(self, key: ObjectKey) -> Duration | None:
        pod = self._pods.get(key)
        if pod is None:
            return None
        if pod.meta.deleted:
            await self._api.delete(POD, pod.meta.name, NAMESPACE, DeleteOptions(grace=Duration(0)))
            return None
        piece = pod.meta.labels[SLICE]
        behaviour = self._behaviours.get(pod.meta.labels[GROUP], FaultProfile())
        age = self.clock.now().since(instant(pod.meta.created or ""))
        if not pod.spec.node_name:
            if piece in self._stuck:
                return None
            return behaviour.boot_delay - age or await self._place(pod)
        if behaviour.lost_after is None or piece in self._lost:
            return None
        left = behaviour.boot_delay + behaviour.lost_after - age
        if not left:
            await self.lose(SliceId(piece))
        return left or None

    async def _place(self, pod: Pod) -> Duration | None:
        node = await self._node_for(pod)
        if node is None:
            return None
        await self._api.patch(NODE, node, MergePatch({"status": _READY}), subresource="status")
        meta = pod.meta
        placed = await self._api.patch(
            POD, meta.name, MergePatch({"spec": {"nodeName": node}}), meta.namespace
        )
        # Seen at once, so that no other Pod gets the same node.
        self._pods.observe(placed)
        await self._api.patch(POD, meta.name, MergePatch({"status": _RUNNING}), meta.namespace, "status")
        # To see whether it is to be lost later.
        return Duration.of(ms=1) if self._behaviours else None

    async def _node_for(self, pod: Pod) -> str | None:
        if not self._pools:
            name = f"node-of-{pod.meta.name}"
            await self._api.create(NODE, {"metadata": {"name": name}})
            return name
        taken = {other.spec.node_name for other in self._pods}
        piece = pod.meta.labels[SLICE]
        free = [node.meta.name for node in self._nodes if _belongs(node, piece, taken)]
        return min(free, default=None)


def _belongs(node: Node, piece: str, taken: set[str]) -> bool:
    meta = node.meta
    return meta.labels.get(SLICE) == piece and meta.name not in taken and meta.deleted is None
