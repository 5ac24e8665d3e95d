"""Kueue as the operator sees it: requests for quota, their queues, and their order."""

from bisect import bisect_left, insort
from collections.abc import Iterable

from neorion.devservers.decide import SERVER_LABEL
from neorion.devservers.decide.manifests import OwnerIdentity
from neorion.devservers.decide.quota import (
    HOLDERS_UP_TO_PLACE,
    AssignedNodes,
    QueueEntry,
    is_waiting,
    preemptor_uid,
    queue_name,
    queue_order,
    workload_manifest,
)
from neorion.devservers.model import DevServerFlavorSpec, Toleration
from neorion.devservers.model.kube_types import DevServerFlavor, DevServerObject
from neorion.devservers.model.kueue import (
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    WORKLOADS,
    Workload,
)
from neorion.keel.kube import ObjectKey
from neorion.keel.kube.control import Informer, InformerFactory, Priority

_HOLDERS_MAX = 8


class WaitingOrder:
    """The requests of each LocalQueue that wait, in the order in which Kueue tries them."""

    def __init__(self, workloads: Informer[Workload]) -> None:
        self._queues: dict[ObjectKey, list[tuple[int, str, str]]] = {}
        workloads.listen(self._changed)

    def position(self, workload: Workload, queues: Iterable[ObjectKey]) -> tuple[int, int]:
        """Place among all that wait in these queues, and their number."""
        own, known = queue_order(workload), [self._queues.get(queue, []) for queue in queues]
        return 1 + sum(bisect_left(one, own) for one in known), sum(map(len, known))

    def _changed(self, before: Workload | None, after: Workload | None, _lane: Priority) -> None:
        if before is not None and is_waiting(before):
            known, order = self._queues[queue_key(before)], queue_order(before)
            del known[bisect_left(known, order)]
        if after is not None and is_waiting(after):
            insort(self._queues.setdefault(queue_key(after), []), queue_order(after))


class QueueCache:
    """Caches of the Workloads of all namespaces: others wait in the same queues."""

    def __init__(self, informers: InformerFactory) -> None:
        self.workloads = informers.of(WORKLOADS)
        self.local_queues = informers.of(LOCAL_QUEUES)
        self.cluster_queues = informers.of(CLUSTER_QUEUES)
        self.flavors = informers.of(RESOURCE_FLAVORS)
        self._waiting = WaitingOrder(self.workloads)
        self._of_server = self.workloads.index(workload_server)
        self._by_uid = self.workloads.index(_uid)
        self._by_cluster_queue = self.workloads.index(_reserved_queue)

    def entry(self, server: DevServerObject, flavor: DevServerFlavor | None) -> QueueEntry | None:
        """The place of a server in its queue; None for a server without one."""
        queue = queue_name(server.spec, flavor.spec if flavor is not None else None)
        if queue is None or flavor is None:
            return None
        workload, others = self._workloads(server, flavor.spec)
        cluster_queue = self._cluster_queue(server.meta.namespace, queue)
        place, waiting = self._position(workload, cluster_queue)
        return QueueEntry(
            queue=queue,
            workload=workload,
            others=others,
            cluster_queue=cluster_queue,
            nodes=self._nodes(workload),
            place=place,
            waiting=waiting,
            preemptor=self._preemptor(workload),
            holders=self._holders(cluster_queue) if 0 < place <= HOLDERS_UP_TO_PLACE else (),
        )

    def _workloads(
        self, server: DevServerObject, flavor: DevServerFlavorSpec
    ) -> tuple[Workload | None, tuple[Workload, ...]]:
        """The one for the machines that it needs now, and the others."""
        meta = server.meta
        identity = OwnerIdentity(meta.name, meta.namespace, meta.uid)
        name = workload_manifest(identity, server.spec, flavor)["metadata"]["name"]
        known = self._of_server.get(meta.key)
        current = next((one for one in known if one.meta.name == name), None)
        return current, tuple(one for one in known if one.meta.name != name)

    def _cluster_queue(self, namespace: str, queue: str) -> str:
        found = self.local_queues.get(ObjectKey(namespace, queue))
        return found.spec.cluster_queue if found is not None else ""

    def _position(self, workload: Workload | None, cluster_queue: str) -> tuple[int, int]:
        """Place among those that wait for the same quota, and their number; zeros for one that does not wait."""
        if workload is None or not cluster_queue or not is_waiting(workload):
            return 0, 0
        queues = [queue.meta.key for queue in self.local_queues if queue.spec.cluster_queue == cluster_queue]
        return self._waiting.position(workload, queues)

    def _holders(self, cluster_queue: str) -> tuple[str, ...]:
        """Servers and jobs that have quota of the queue or of its cohort, the newest first."""
        own = self.cluster_queues.get(ObjectKey("", cluster_queue))
        cohort = own.spec.cohort_name if own is not None else ""
        lenders = {one.meta.name for one in self.cluster_queues if cohort and one.spec.cohort_name == cohort}
        found = [one for queue in {cluster_queue, *lenders} for one in self._by_cluster_queue.get(queue)]
        found.sort(key=lambda one: (one.meta.created or "", one.meta.uid), reverse=True)
        return tuple(map(_shown_name, found[:_HOLDERS_MAX]))

    def _nodes(self, workload: Workload | None) -> AssignedNodes:
        admission = workload.status.admission if workload is not None else None
        if admission is None:
            return AssignedNodes()
        names = {name for one in admission.pod_set_assignments for name in one.flavors.values()}
        found = [flavor for name in sorted(names) if (flavor := self.flavors.get(ObjectKey("", name)))]
        labels = {key: value for one in found for key, value in one.spec.node_labels.items()}
        tolerations = tuple(
            Toleration(key=one.key, operator=one.operator, value=one.value, effect=one.effect)
            for flavor in found
            for one in flavor.spec.tolerations
        )
        return AssignedNodes(tuple(sorted(labels.items())), tolerations)

    def _preemptor(self, workload: Workload | None) -> str:
        """Server or job for which it was evicted, as NAMESPACE/NAME."""
        uid = preemptor_uid(workload)
        found = next(iter(self._by_uid.get(uid)), None) if uid is not None else None
        return _shown_name(found) if found is not None else ""


def workload_server(workload: Workload) -> Iterable[ObjectKey]:
    name = workload.meta.labels.get(SERVER_LABEL)
    return (ObjectKey(workload.meta.namespace, name),) if name else ()


def _uid(workload: Workload) -> Iterable[str]:
    return (workload.meta.uid,)


def queue_key(workload: Workload) -> ObjectKey:
    return ObjectKey(workload.meta.namespace, workload.spec.queue_name)


def _reserved_queue(workload: Workload) -> Iterable[str]:
    """The ClusterQueue whose quota it has."""
    admission = workload.status.admission
    return (admission.cluster_queue,) if admission is not None else ()


def _shown_name(workload: Workload) -> str:
    owner = workload.meta.controller
    name = workload.meta.labels.get(SERVER_LABEL) or (owner.name if owner is not None else workload.meta.name)
    return f"{workload.meta.namespace}/{name}"
