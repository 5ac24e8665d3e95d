"""Real machines behind a pool: a Node that asks for one gets it after its boot time, and one without its Node goes."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from neorion.drydock.cluster import Cluster
from neorion.drydock.coreweave.nodepool_types import MACHINES, POOL, NodeBacking
from neorion.drydock.node import NodeSpec, add, nodes, remove
from neorion.drydock.simulated import BOOT_TIME
from neorion.keel.base import Conflict, Duration, NotFound
from neorion.keel.clock import Clock, Rng
from neorion.keel.kube import KubeApi, ObjectKey, instant
from neorion.keel.kube.control import Controller, Informer, self_key
from neorion.keel.kube.core import NODE, Node

_GPUS: Final = "nvidia.com/gpu.count"


class RealNodeProvisioner:
    """One wheel, for Nodes. `find` is the cluster as it is now: it may have got its network since."""

    def __init__(self, find: Callable[[], Cluster], clock: Clock) -> None:
        self._find = find
        self._clock = clock

    @property
    def possible(self) -> bool:
        return self._find().layout.networked

    def names(self) -> set[str]:
        """Names of all machines of pools, running or not. Other machines are left alone."""
        return {node.name for node in nodes(self._find().layout) if POOL in node.spec.labels}

    def controller(self, mirror: Informer[Node], rng: Rng) -> Controller[ObjectKey]:
        async def reconcile(key: ObjectKey) -> Duration | None:
            return await self._reconcile(key, mirror.get(key))

        found = Controller("machines", reconcile, self._clock, rng)
        found.watch(mirror, self_key)
        return found

    async def sweep(self, api: KubeApi) -> None:
        """Removes machines whose Node went while this process was away."""
        known = {node.meta.name for node in (await api.list(NODE)).items}
        for name in self.names() - known:
            await self._remove(name)

    async def lose(self, name: str) -> None:
        """Stops a machine without notice, like a power cut."""
        cluster = self._find()
        for node in nodes(cluster.layout):
            if node.name == name:
                await cluster.stop(node.part)

    async def _reconcile(self, key: ObjectKey, node: Node | None) -> Duration | None:
        # A kubelet whose Node was taken away may register another one, which no pool owns.
        if node is None or node.meta.annotations.get(MACHINES) != NodeBacking.REAL:
            if key.name in self.names():
                await self._remove(key.name)
            return None
        meta = node.meta
        if meta.deleted or meta.name in self.names():
            return None
        ready = instant(meta.created or "") + Duration.parse(meta.annotations[BOOT_TIME])
        left = ready.since(self._clock.now())
        if left.ns:
            return left
        labels = {POOL: meta.labels[POOL]}
        spec = NodeSpec(labels, gpus=int(meta.labels.get(_GPUS, "0")))
        with suppress(Conflict):
            await add(self._find(), meta.name, spec)
        return None

    async def _remove(self, name: str) -> None:
        with suppress(NotFound):
            await remove(self._find(), name)
