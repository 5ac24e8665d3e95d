"""Kueue as the operator sees it: requests for quota, their queues, and their order."""

from collections.abc import Iterable

from neorion.devservers.decide import SERVER_LABEL
from neorion.devservers.decide.manifests import OwnerIdentity
from neorion.devservers.decide.quota import (
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
from neorion.devservers.model.kueue import LOCAL_QUEUES, RESOURCE_FLAVORS, WORKLOADS, Workload
from neorion.keel.kube import ObjectKey
from neorion.keel.kube.control import InformerFactory


class QueueCache:
    """Caches of the Workloads of all namespaces: others wait in the same queues."""

    def __init__(self, informers: InformerFactory) -> None:
        self.workloads = informers.of(WORKLOADS)
        self.local_queues = informers.of(LOCAL_QUEUES)
        self.flavors = informers.of(RESOURCE_FLAVORS)
        self._of_server = self.workloads.index(workload_server)
        self._by_uid = self.workloads.index(_uid)
        self._by_queue = self.workloads.index(_local_queue)

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
        waiting = [one for queue in queues for one in self._by_queue.get(queue) if is_waiting(one)]
        own = queue_order(workload)
        return 1 + sum(queue_order(one) < own for one in waiting), len(waiting)

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
        if found is None:
            return ""
        name = found.meta.labels.get(SERVER_LABEL) or found.meta.name
        return f"{found.meta.namespace}/{name}"


def workload_server(workload: Workload) -> Iterable[ObjectKey]:
    name = workload.meta.labels.get(SERVER_LABEL)
    return (ObjectKey(workload.meta.namespace, name),) if name else ()


def _uid(workload: Workload) -> Iterable[str]:
    return (workload.meta.uid,)


def _local_queue(workload: Workload) -> Iterable[ObjectKey]:
    return (ObjectKey(workload.meta.namespace, workload.spec.queue_name),)
