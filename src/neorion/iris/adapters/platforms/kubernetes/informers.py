"""Informers for the slices of one installation."""

from collections.abc import Iterator, Sequence

from neorion.capacity.coreweave import NODE_POOL, POOL_LABEL, NodePool, reclaim_notice
from neorion.iris.adapters.platforms.kubernetes.health import is_ready, is_silent
from neorion.iris.adapters.platforms.kubernetes.names import Names
from neorion.iris.adapters.platforms.kubernetes.pools import ObservedPool, PoolSlice
from neorion.iris.adapters.platforms.kubernetes.record import Record, record_of
from neorion.iris.adapters.platforms.kubernetes.steps import Observed
from neorion.keel.base import Instant
from neorion.keel.kube import KubeObject, ObjectKey, Selector
from neorion.keel.kube.control import Controller, Informer, InformerFactory
from neorion.keel.kube.core import NODE, POD, SECRET, Node, Pod, Secret


class SliceInformers:
    """Records and Pods of one namespace; NodePools and their nodes too where slices have pools."""

    def __init__(self, informers: InformerFactory, names: Names, *, pools: bool) -> None:
        mine = Selector(labels=names.selector)
        self._names = names
        self._secrets: Informer[Secret] = informers.of(SECRET, names.namespace, mine)
        self._pods: Informer[Pod] = informers.of(POD, names.namespace, mine)
        self._pools: Informer[NodePool] | None = informers.of(NODE_POOL, "", mine) if pools else None
        self._nodes: Informer[Node] | None = informers.of(NODE, "", mine) if pools else None
        self._secrets_of_pool = self._secrets.index(_pool_of_secret)
        self._pods_of = self._pods.index(self.slice_of)
        self._pods_on = self._pods.index(lambda pod: [pod.spec.node_name])
        self._nodes_of = self._nodes.index(self.slice_of) if self._nodes is not None else None
        self._nodes_in = self._nodes.index(_pool_of_node) if self._nodes is not None else None

    def wake_slices(self, controller: Controller[str]) -> None:
        """Lets every change wake the slices that it concerns."""
        controller.watch(self._secrets, self.slice_of)
        controller.watch(self._pods, self.slice_of)
        if self._pools is not None and self._nodes is not None:
            controller.watch(self._pools, self._slices_of_pool)
            controller.watch(self._nodes, self.slice_of, _node_changed)
            # The oldest and the youngest slice of a pool change with every other one.
            controller.watch(self._secrets, self._neighbours, begins=False)

    def wake_pools(self, controller: Controller[str]) -> None:
        """Lets every change wake the NodePools that it concerns."""
        if self._pools is None or self._nodes is None:
            return
        controller.watch(self._pools, lambda pool: [pool.meta.name])
        controller.watch(self._secrets, _pool_of_secret)
        controller.watch(self._pods, self._pools_of_pod)
        controller.watch(self._nodes, _pool_of_node, _node_changed)

    def slice_of(self, thing: KubeObject) -> list[str]:
        name = self._names.slice_of(thing.meta.labels)
        return [name] if name else []

    def records(self) -> Iterator[tuple[Secret, Record]]:
        for secret in list(self._secrets):
            if (record := record_of(secret)) is not None:
                yield secret, record

    def find(self, name: str) -> tuple[Secret, Record] | None:
        secret = self._secrets.get(ObjectKey(self._names.namespace, name))
        record = record_of(secret) if secret is not None else None
        return (secret, record) if secret is not None and record is not None else None

    def observed(self, record: Record, now: Instant) -> Observed:
        nodes = self._nodes_of.get(record.name) if self._nodes_of is not None else []
        pods = {pod.meta.name: pod for pod in self._pods_of.get(record.name)}
        workers = [
            self._names.worker(record.name, number, record.machines) for number in range(record.machines)
        ]
        pool = self.observed_pool(record.pool, now)
        youngest = pool.youngest
        return Observed(
            record=record,
            pods=[pods[name] for name in workers if name in pods],
            missing=[(number, name) for number, name in enumerate(workers) if name not in pods],
            pool=pool.pool,
            nodes=len(nodes),
            notices={node.meta.name: notice for node in nodes if (notice := _notice(node))},
            now=now,
            counted=pool.counts(record),
            youngest=youngest is not None and youngest.name == record.name,
            pool_in_use=pool.used_beside(record),
        )

    def observed_pool(self, name: str, now: Instant) -> ObservedPool:
        known = [record_of(secret) for secret in self._secrets_of_pool.get(name)]
        records = sorted((one for one in known if one is not None), key=lambda one: one.id)
        slices = [self._pool_slice(record) for record in records]
        taken = {node.meta.name for each in slices for node in each.nodes}
        nodes = self._nodes_in.get(name) if self._nodes_in is not None else []
        pool = self._pools.get(ObjectKey("", name)) if self._pools is not None else None
        return ObservedPool(pool, slices, [node for node in nodes if node.meta.name not in taken], now)

    def pods_of(self, name: str) -> Sequence[Pod]:
        return self._pods_of.get(name)

    def _pool_slice(self, record: Record) -> PoolSlice:
        nodes = self._nodes_of.get(record.name) if self._nodes_of is not None else []
        workers = self._pods_of.get(record.name)
        names = {pod.meta.name for pod in workers}
        on_nodes = (pod for node in nodes for pod in self._pods_on.get(node.meta.name))
        return PoolSlice(record, nodes, workers, [pod for pod in on_nodes if pod.meta.name not in names])

    def _slices_of_pool(self, pool: NodePool) -> list[str]:
        return [secret.meta.name for secret in self._secrets_of_pool.get(pool.meta.name)]

    def _neighbours(self, secret: Secret) -> list[str]:
        return [
            each.meta.name for name in _pool_of_secret(secret) for each in self._secrets_of_pool.get(name)
        ]

    def _pools_of_pod(self, pod: Pod) -> list[str]:
        found = {
            name for piece in self.slice_of(pod) if (known := self.find(piece)) for name in [known[1].pool]
        }
        node = self._nodes.get(ObjectKey("", pod.spec.node_name)) if self._nodes is not None else None
        return sorted(found.union(_pool_of_node(node) if node is not None else ()))


def _pool_of_secret(secret: Secret) -> list[str]:
    record = record_of(secret)
    return [record.pool] if record is not None else []


def _pool_of_node(node: Node) -> list[str]:
    return [name] if (name := node.meta.labels.get(POOL_LABEL, "")) else []


def _notice(node: Node) -> str:
    """Reason why the node's workers are lost, or will be soon; empty if there is none."""
    if is_silent(node):
        return "is lost: the node no longer reports its status"
    notice = reclaim_notice(node)
    return f"is lost: CoreWeave reclaims the spot machine: {notice}" if notice else ""


def _node_changed(old: Node, new: Node) -> bool:
    """Ignores heartbeats."""
    before, after = (
        (node.meta.labels, node.spec.unschedulable, is_ready(node), _notice(node)) for node in (old, new)
    )
    return before != after
