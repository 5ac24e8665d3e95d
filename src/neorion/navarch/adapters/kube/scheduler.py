"""The port `Scheduler`, kept over the Kubernetes API."""

from collections.abc import Callable, Mapping
from typing import Final

import anyio

from neorion.capacity.node import marks
from neorion.keel.base import Conflict, Duration, NotFound, Retry
from neorion.keel.clock import Clock, Rng
from neorion.keel.kube import DeleteOptions, KubeApi, ObjectKey
from neorion.keel.kube.control import Controller, EventRecorder, InformerFactory, self_key
from neorion.keel.kube.core import NODE
from neorion.keel.kube.core import Node as KubeNode
from neorion.keel.telemetry import logger
from neorion.navarch.adapters.kube.drain import DrainRules, describe
from neorion.navarch.adapters.kube.evictor import Evictor
from neorion.navarch.adapters.kube.node_index import KubeNodeIndex
from neorion.navarch.adapters.kube.node_marks import NodeMarks, kubelet_ready, scheduling_status, signs
from neorion.navarch.adapters.kube.node_writer import NodeWriter
from neorion.navarch.model import Node, NodeId, NodeState, Origin
from neorion.navarch.ports import DrainProgress, SchedulingStatus

log = logger(__name__)

_SYNC_WAIT: Final = Duration.of(seconds=1)
# A person adds and removes this label, so a slow check suffices.
_DO_NOT_DISRUPT_WAIT: Final = Duration.of(seconds=30)
# The kubelet writes a node's status every few seconds, so an old version is nothing unusual.
_TRIES: Final = 5
_WORKERS: Final = 4

Labels = Callable[[str], Mapping[str, str]]


class KubeScheduler:
    """Writes the marks of the fleet to Kubernetes nodes, also when a node joins later or its marks were changed.

    `labels` gives the labels that the nodes of a pool carry.
    """

    def __init__(
        self,
        api: KubeApi,
        informers: InformerFactory,
        rules: DrainRules,
        labels: Labels,
        clock: Clock,
        rng: Rng,
    ) -> None:
        nodes = informers.of(NODE)
        self._api = api
        self._informers = informers
        self._mirror = nodes
        self._roster = KubeNodeIndex(nodes)
        self._hand = NodeWriter(api, clock)
        self._evictor = Evictor(api, rules, clock)
        self._recorder = EventRecorder(api, "navarch.dev/control-plane", "navarch", clock)
        self._labels = labels
        # The reason for which each drain waited at the last check.
        self._waits: dict[NodeId, str] = {}
        # One writer for each node at a time. A later one writes the newest state.
        self._locks: dict[ObjectKey, anyio.Lock] = {}
        self._controller = Controller("navarch.kube", self._keep, clock, rng, workers=_WORKERS)
        self._controller.watch(nodes, self_key)

    async def run(self) -> None:
        """Beside the informers, while the process lives: marks nodes that join after they were told of."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._recorder.run)
            await self._controller.run()

    async def cordon(self, node: Node, why: str) -> None:
        kube = self._find(node)
        if kube is None:
            # It is marked when it joins.
            return
        if marks.DO_NOT_DISRUPT in kube.meta.labels:
            raise _do_not_disrupt(kube)
        await self._mark(kube)
        if node.state is NodeState.CORDONED:
            self._tell(kube, "Cordoned", f"Takes no new work: {why}.", sick=node.ailment is not None)

    async def uncordon(self, node: Node) -> SchedulingStatus:
        self._waits.pop(node.id, None)
        kube = self._find(node)
        if kube is None:
            return SchedulingStatus(schedulable=False, sentence="it has not joined the cluster")
        if marks.DO_NOT_DISRUPT in kube.meta.labels:
            return scheduling_status(kube)
        written = await self._mark(kube)
        if kube.spec.unschedulable:
            self._tell(kube, "Uncordoned", f"Takes work: {node.why}.")
        return scheduling_status(written)

    async def drain(self, node: Node, why: str, left: Duration) -> DrainProgress:
        kube = self._find(node)
        if kube is None:
            return DrainProgress(done=True, sentence="the cluster does not know it")
        if marks.DO_NOT_DISRUPT in kube.meta.labels:
            raise _do_not_disrupt(kube)
        # Marked first: what is evicted must not come back.
        kube = await self._mark(kube)
        if node.id not in self._waits:
            self._tell(kube, "Draining", f"Its pods are asked to leave: {why}.")
        pods = await self._evictor.drain(kube, left)
        self._waits[node.id] = told = describe(pods)
        if pods:
            await self._mark(kube)
        else:
            self._tell(kube, "Drained", "Nothing runs on it any more.")
        return DrainProgress(done=not pods, left=len(pods), sentence=told)

    async def machine_up(self, node: Node) -> bool | None:
        """Return the kubelet's condition, or None for a node outside the cluster."""
        kube = self._find(node)
        return None if kube is None else kubelet_ready(kube)

    async def forget(self, node: Node) -> None:
        """Deletes the Kubernetes node of a machine that is gone, which would stay NotReady for ever.

        Machines that navarch did not buy still exist. Their nodes stay, cordoned.
        """
        kube = self._find(node)
        self._roster.forget(node.id)
        self._waits.pop(node.id, None)
        if kube is None or node.origin is Origin.JOINED or marks.DO_NOT_DISRUPT in kube.meta.labels:
            return
        try:
            await self._api.delete(NODE, kube.meta.name, how=DeleteOptions(uid=kube.meta.uid))
        except (NotFound, Conflict):
            # Gone, or another of that name by now.
            return
        self._tell(kube, "MachineGone", f"Its machine {node.machine} was given back: {node.why}.")
        log.info("kubernetes node deleted", node=node.id, name=kube.meta.name)

    def _tell(self, kube: KubeNode, reason: str, note: str, *, sick: bool = False) -> None:
        """Records a Kubernetes Event, which kubectl shows with the node."""
        self._recorder.tell(NODE, kube, reason, note, action=reason, warning=sick)

    def aliases(self, name: str) -> frozenset[str]:
        """All names of an agent's machine, for agents that use the name of their Kubernetes node."""
        self._check_synced()
        return self._roster.aliases(name)

    def _find(self, node: Node) -> KubeNode | None:
        self._roster.learn(node)
        self._check_synced()
        return self._roster.find(node)

    def _check_synced(self) -> None:
        if not self._mirror.synced:
            raise Retry(
                "navarch.kube_not_synced", "The cluster's nodes have not been seen yet.", after=_SYNC_WAIT
            )

    async def _mark(self, kube: KubeNode) -> KubeNode:
        async with self._locks.setdefault(kube.meta.key, anyio.Lock()):
            newest = self._roster.named(kube.meta.key)
            if newest is None or newest.meta.uid != kube.meta.uid:
                return kube
            node = self._roster.owner(newest)
            if node is None:
                return newest
            wanted = signs(node, self._labels(node.pool), self._waits.get(node.id, ""))
            try:
                return await self._write(newest, wanted)
            except NotFound:
                # Deleted, and the mirror has not heard of it yet.
                return newest

    async def _write(self, kube: KubeNode, wanted: NodeMarks) -> KubeNode:
        """The mirror may be a moment behind: what it knows is tried first, then what the server has."""
        for _ in range(_TRIES):
            try:
                written = await self._hand.write(kube, wanted)
            except Conflict:
                newest = await self._api.get(NODE, kube.meta.name)
                if newest.meta.uid != kube.meta.uid:
                    return kube
                kube = newest
            else:
                self._informers.observe(NODE, written)
                return written
        raise Retry(
            "navarch.kube_busy", f"Others keep changing {kube.meta.name} in the cluster.", after=_SYNC_WAIT
        )

    async def _keep(self, key: ObjectKey) -> Duration | None:
        kube = self._roster.named(key)
        if kube is None:
            self._locks.pop(key, None)
        elif self._roster.owner(kube) is not None and marks.DO_NOT_DISRUPT not in kube.meta.labels:
            await self._mark(kube)
        return None


def _do_not_disrupt(kube: KubeNode) -> Retry:
    return Retry(
        "navarch.hands_off",
        f"A person keeps {kube.meta.name} by the label {marks.DO_NOT_DISRUPT}.",
        hint=f"Run: kubectl label node {kube.meta.name} {marks.DO_NOT_DISRUPT}-.",
        after=_DO_NOT_DISRUPT_WAIT,
    )
