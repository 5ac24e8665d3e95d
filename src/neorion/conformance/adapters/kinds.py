"""The kinds that checks create or read. Objects are read whole, as plain JSON."""

from typing import Any, Final

from neorion.keel.kube import Kind

Json = dict[str, Any]


def kind(name: str, plural: str, api_version: str = "v1", *, namespaced: bool = True) -> Kind[Json]:
    group, _, version = api_version.rpartition("/")
    return Kind(dict[str, Any], name, plural, group, version, namespaced, whole=True)


POD: Final = kind("Pod", "pods")
SERVICE: Final = kind("Service", "services")
SECRET: Final = kind("Secret", "secrets")
CONFIG_MAP: Final = kind("ConfigMap", "configmaps")
NODE: Final = kind("Node", "nodes", namespaced=False)
NAMESPACE: Final = kind("Namespace", "namespaces", namespaced=False)
DEPLOYMENT: Final = kind("Deployment", "deployments", "apps/v1")
JOB: Final = kind("Job", "jobs", "batch/v1")
AUTOSCALER: Final = kind("HorizontalPodAutoscaler", "horizontalpodautoscalers", "autoscaling/v2")
ENDPOINT_SLICE: Final = kind("EndpointSlice", "endpointslices", "discovery.k8s.io/v1")
DEFINITION: Final = kind(
    "CustomResourceDefinition", "customresourcedefinitions", "apiextensions.k8s.io/v1", namespaced=False
)
WEBHOOKS: Final = kind(
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    "admissionregistration.k8s.io/v1",
    namespaced=False,
)
DEVICE_CLASS: Final = kind("DeviceClass", "deviceclasses", "resource.k8s.io/v1", namespaced=False)
RESOURCE_SLICE: Final = kind("ResourceSlice", "resourceslices", "resource.k8s.io/v1", namespaced=False)
RESOURCE_CLAIM: Final = kind("ResourceClaim", "resourceclaims", "resource.k8s.io/v1")
CLAIM_TEMPLATE: Final = kind("ResourceClaimTemplate", "resourceclaimtemplates", "resource.k8s.io/v1")
GATEWAY_CLASS: Final = kind(
    "GatewayClass", "gatewayclasses", "gateway.networking.k8s.io/v1", namespaced=False
)
GATEWAY: Final = kind("Gateway", "gateways", "gateway.networking.k8s.io/v1")
HTTP_ROUTE: Final = kind("HTTPRoute", "httproutes", "gateway.networking.k8s.io/v1")
_KUEUE: Final = "kueue.x-k8s.io/v1beta2"
TOPOLOGY: Final = kind("Topology", "topologies", _KUEUE, namespaced=False)
FLAVOR: Final = kind("ResourceFlavor", "resourceflavors", _KUEUE, namespaced=False)
CLUSTER_QUEUE: Final = kind("ClusterQueue", "clusterqueues", _KUEUE, namespaced=False)
LOCAL_QUEUE: Final = kind("LocalQueue", "localqueues", _KUEUE)
JOB_SET: Final = kind("JobSet", "jobsets", "jobset.x-k8s.io/v1alpha2")
COSCHEDULING_GROUP: Final = kind("PodGroup", "podgroups", "scheduling.x-k8s.io/v1alpha1")
NATIVE_GROUP: Final = kind("PodGroup", "podgroups", "scheduling.k8s.io/v1alpha2")
WORKLOAD: Final = kind("Workload", "workloads", _KUEUE)
KARPENTER_POOL: Final = kind("NodePool", "nodepools", "karpenter.sh/v1", namespaced=False)
KARPENTER_CLAIM: Final = kind("NodeClaim", "nodeclaims", "karpenter.sh/v1", namespaced=False)
COREWEAVE_POOL: Final = kind("NodePool", "nodepools", "compute.coreweave.com/v1alpha1", namespaced=False)

# What checks create outside of namespaces, in the order in which it has to go.
CLUSTER_WIDE: Final = (
    WEBHOOKS,
    CLUSTER_QUEUE,
    FLAVOR,
    TOPOLOGY,
    RESOURCE_SLICE,
    DEVICE_CLASS,
    KARPENTER_POOL,
)
