"""What the cluster shows of one installation's slices, kept up to date by watches."""

from collections.abc import Iterator

from neorion.capacity.coreweave import NODE_POOL, NodePool
from neorion.iris.adapters.platforms.kubernetes.health import is_silent
from neorion.iris.adapters.platforms.kubernetes.names import Names
from neorion.iris.adapters.platforms.kubernetes.record import Record, record_of
from neorion.iris.adapters.platforms.kubernetes.steps import Observed
from neorion.keel.base import Instant
from neorion.keel.kube import KubeObject, ObjectKey, Selector
from neorion.keel.kube.control import Controller, Informer, InformerFactory
from neorion.keel.kube.core import NODE, POD, SECRET, Node, Pod, Secret


class Mirrors:
    """Records and Pods of one namespace; NodePools and their nodes too where slices have pools."""

    def __init__(self, informers: InformerFactory, names: Names, *, pools: bool) -> None:
        mine = Selector(labels=names.selector)
        self._names = names
        self.secrets: Informer[Secret] = informers.of(SECRET, names.namespace, mine)
        self.pods: Informer[Pod] = informers.of(POD, names.namespace, mine)
        self.pools: Informer[NodePool] | None = informers.of(NODE_POOL, "", mine) if pools else None
        self._nodes: Informer[Node] | None = informers.of(NODE, "", mine) if pools else None
        self._pods_of = self.pods.index(self.slice_of)
        self._nodes_of = self._nodes.index(self.slice_of) if self._nodes is not None else None

    def wake(self, controller: Controller[str]) -> None:
        """Lets every change wake the slice that it belongs to."""
        controller.watch(self.secrets, self.slice_of)
        controller.watch(self.pods, self.slice_of)
        if self.pools is not None and self._nodes is not None:
            controller.watch(self.pools, self.slice_of)
            # Of nodes it matters whether they are there and speak.
            controller.watch(self._nodes, self.slice_of, lambda old, new: is_silent(old) != is_silent(new))

    def slice_of(self, thing: KubeObject) -> list[str]:
        name = self._names.slice_of(thing.meta.labels)
        return [name] if name else []

    def records(self) -> Iterator[tuple[Secret, Record]]:
        for secret in list(self.secrets):
            if (record := record_of(secret)) is not None:
                yield secret, record

    def find(self, name: str) -> tuple[Secret, Record] | None:
        secret = self.secrets.get(ObjectKey(self._names.namespace, name))
        record = record_of(secret) if secret is not None else None
        return (secret, record) if secret is not None and record is not None else None

    def observed(self, record: Record, now: Instant) -> Observed:
        nodes = self._nodes_of.get(record.name) if self._nodes_of is not None else []
        pods = {pod.meta.name: pod for pod in self._pods_of.get(record.name)}
        machines = record.wanted.machines
        workers = [self._names.worker(record.name, number, machines) for number in range(machines)]
        return Observed(
            record=record,
            pods=[pods[name] for name in workers if name in pods],
            missing=[(number, name) for number, name in enumerate(workers) if name not in pods],
            pool=self.pool(record.name),
            nodes=len(nodes),
            silent=frozenset(node.meta.name for node in nodes if is_silent(node)),
            now=now,
        )

    def pool(self, name: str) -> NodePool | None:
        return self.pools.get(ObjectKey("", name)) if self.pools is not None else None

    def strays(self, name: str) -> tuple[list[Pod], NodePool | None]:
        """What is left of a slice whose record is gone."""
        return self._pods_of.get(name), self.pool(name)
