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
    """ResourceFlavor by which each resource of a set of Pods is served, and the amounts."""

    name: str = ""
    flavors: dict[str, str] = field(default_factory=dict)
    resource_usage: dict[str, str] = field(default_factory=dict)
    count: int = 0


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


class NominalQuota(KubeStruct, frozen=True, kw_only=True):
    """Amount of a resource that belongs to a ClusterQueue."""

    name: str = ""
    nominal_quota: str | int = 0


class FlavorQuotas(KubeStruct, frozen=True, kw_only=True):
    """Quota on the nodes of one ResourceFlavor."""

    name: str = ""
    resources: tuple[NominalQuota, ...] = ()


class ResourceGroup(KubeStruct, frozen=True, kw_only=True):
    """Resources with the ResourceFlavors that serve them."""

    flavors: tuple[FlavorQuotas, ...] = ()


class ClusterQueueSpec(KubeStruct, frozen=True, kw_only=True):
    """Quota of a ClusterQueue, and the cohort in which it lends and borrows."""

    cohort_name: str = ""
    resource_groups: tuple[ResourceGroup, ...] = ()


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
