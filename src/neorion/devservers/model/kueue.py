"""Objects of Kueue, as far as the operator reads them."""

from msgspec import field

from neorion.keel.kube import Condition, Kind, KubeObject, KubeStruct

GROUP = "kueue.x-k8s.io"
VERSION = "v1beta2"
QUEUE_LABEL = f"{GROUP}/queue-name"
# A Workload names the object whose quota it reserves.
JOB_UID_LABEL = f"{GROUP}/job-uid"
# Condition of a Workload whose Pods have all been ready.
PODS_READY = "PodsReady"
# Reason of a server that can never be admitted as it is.
EXCEEDS_QUOTA = "ExceedsQuota"


class WorkloadSpec(KubeStruct, frozen=True, kw_only=True):
    """Queue and priority of a request for quota."""

    queue_name: str = ""
    priority: int | None = None
    active: bool | None = None


class PodSetAssignment(KubeStruct, frozen=True, kw_only=True):
    """ResourceFlavor by which each resource of a set of Pods is served."""

    name: str = ""
    flavors: dict[str, str] = field(default_factory=dict)


class Admission(KubeStruct, frozen=True, kw_only=True):
    """Quota that was reserved."""

    cluster_queue: str = ""
    pod_set_assignments: tuple[PodSetAssignment, ...] = ()


class WorkloadStatus(KubeStruct, frozen=True, kw_only=True):
    """State of a request for quota."""

    conditions: tuple[Condition, ...] = ()
    admission: Admission | None = None


class Workload(KubeObject, frozen=True, kw_only=True):
    """A request for quota, and Kueue's answer."""

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class LocalQueueSpec(KubeStruct, frozen=True, kw_only=True):
    """ClusterQueue behind a queue of a namespace."""

    cluster_queue: str = ""


class LocalQueueStatus(KubeStruct, frozen=True, kw_only=True):
    """State of a queue: whether it takes requests."""

    conditions: tuple[Condition, ...] = ()


class LocalQueue(KubeObject, frozen=True, kw_only=True):
    """A queue of one namespace."""

    spec: LocalQueueSpec = LocalQueueSpec()
    status: LocalQueueStatus = LocalQueueStatus()


class ClusterQueueSpec(KubeStruct, frozen=True, kw_only=True):
    """Cohort in which a ClusterQueue lends and borrows quota."""

    cohort_name: str = ""


class ClusterQueue(KubeObject, frozen=True, kw_only=True):
    """Quota that the LocalQueues of one or more namespaces share."""

    spec: ClusterQueueSpec = ClusterQueueSpec()


class FlavorToleration(KubeStruct, frozen=True, kw_only=True):
    """A taint of the nodes of a ResourceFlavor."""

    key: str | None = None
    operator: str = "Equal"
    value: str | None = None
    effect: str | None = None


class ResourceFlavorSpec(KubeStruct, frozen=True, kw_only=True):
    """Labels and taints of the nodes of a ResourceFlavor."""

    node_labels: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[FlavorToleration, ...] = ()


class ResourceFlavor(KubeObject, frozen=True, kw_only=True):
    """Nodes that Kueue counts together."""

    spec: ResourceFlavorSpec = ResourceFlavorSpec()


WORKLOADS = Kind(Workload, "Workload", "workloads", GROUP, VERSION)
LOCAL_QUEUES = Kind(LocalQueue, "LocalQueue", "localqueues", GROUP, VERSION)
CLUSTER_QUEUES = Kind(ClusterQueue, "ClusterQueue", "clusterqueues", GROUP, VERSION, namespaced=False)
RESOURCE_FLAVORS = Kind(ResourceFlavor, "ResourceFlavor", "resourceflavors", GROUP, VERSION, namespaced=False)
