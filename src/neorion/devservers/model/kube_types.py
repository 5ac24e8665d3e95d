"""The kinds of the API this system reads: its own six, and of the others only what a decision needs."""

from msgspec import field

from neorion.devservers.model.field_types import GROUP, VERSION
from neorion.devservers.model.flavor import DevServerFlavorSpec, DevServerFlavorStatus
from neorion.devservers.model.login import (
    DevServerLoginPolicySpec,
    DevServerLoginPolicyStatus,
    DevServerUserRequestSpec,
    DevServerUserRequestStatus,
)
from neorion.devservers.model.session import DevServerSessionSpec, DevServerSessionStatus
from neorion.devservers.model.spec import DevServerSpec
from neorion.devservers.model.status import DevServerStatus
from neorion.devservers.model.user import DevServerUserSpec, DevServerUserStatus
from neorion.keel.kube import Kind, KubeObject, KubeStruct
from neorion.keel.kube.core import Container


class DevServerObject(KubeObject, frozen=True, kw_only=True):
    """A development server."""

    spec: DevServerSpec
    status: DevServerStatus = DevServerStatus()


class DevServerFlavor(KubeObject, frozen=True, kw_only=True):
    """A kind of machine one can ask for."""

    spec: DevServerFlavorSpec
    status: DevServerFlavorStatus = DevServerFlavorStatus()


class DevServerUser(KubeObject, frozen=True, kw_only=True):
    """A person who may use development servers."""

    spec: DevServerUserSpec = DevServerUserSpec()
    status: DevServerUserStatus = DevServerUserStatus()

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that log in."""
        return tuple(dict.fromkeys((*self.spec.keys, *self.fetched_keys)))

    @property
    def fetched_keys(self) -> tuple[str, ...]:
        """The keys of the key server. Those of another login than the one named now count for nothing."""
        current = self.spec.github and self.status.fetched_from == self.spec.github
        return self.status.fetched_keys if current else ()


class DevServerSession(KubeObject, frozen=True, kw_only=True):
    """A connection that is open at the bastion."""

    spec: DevServerSessionSpec
    status: DevServerSessionStatus = DevServerSessionStatus()


class DevServerLoginPolicy(KubeObject, frozen=True, kw_only=True):
    """Ways to log in beside the keys of users."""

    spec: DevServerLoginPolicySpec = DevServerLoginPolicySpec()
    status: DevServerLoginPolicyStatus = DevServerLoginPolicyStatus()


class DevServerUserRequest(KubeObject, frozen=True, kw_only=True):
    """A first login that waits for the user controller."""

    spec: DevServerUserRequestSpec
    status: DevServerUserRequestStatus = DevServerUserRequestStatus()


class PodTemplatePodSpec(KubeStruct, frozen=True):
    """Pod spec of a Deployment, with the fields that are read."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()


class PodTemplate(KubeStruct, frozen=True):
    """The pods a Deployment makes."""

    spec: PodTemplatePodSpec = PodTemplatePodSpec()


class ServerDeploymentSpec(KubeStruct, frozen=True):
    """Replicas and pod template."""

    replicas: int | None = None
    template: PodTemplate = field(default=PodTemplate())


class DeploymentCondition(KubeStruct, frozen=True):
    """One condition of a Deployment, of which only the words are read."""

    type: str
    message: str = ""


class ServerDeploymentStatus(KubeStruct, frozen=True):
    """Status of a Deployment: its number of Pods, and the generation that it refers to."""

    conditions: tuple[DeploymentCondition, ...] = ()
    observed_generation: int = 0
    replicas: int = 0


class ServerDeployment(KubeObject, frozen=True):
    """The Deployment of a server."""

    spec: ServerDeploymentSpec = ServerDeploymentSpec()
    status: ServerDeploymentStatus = ServerDeploymentStatus()


class ServerStatefulSet(ServerDeployment, frozen=True):
    """StatefulSet of a distributed server."""


class NodeSelectorRequirement(KubeStruct, frozen=True):
    """Requirement on a label of a node."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(KubeStruct, frozen=True):
    """All of these at once."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(KubeStruct, frozen=True):
    """One of these, at least."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class VolumeNodeAffinity(KubeStruct, frozen=True):
    """Which nodes can reach a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(KubeStruct, frozen=True):
    """Where a volume is."""

    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(KubeObject, frozen=True):
    """The PersistentVolume behind a home."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()


class StorageClass(KubeObject, frozen=True):
    """A storage class."""

    allow_volume_expansion: bool = False


class Endpoint(KubeStruct, frozen=True):
    """One member of a Service."""

    addresses: tuple[str, ...] = ()


class EndpointPort(KubeStruct, frozen=True):
    """A port that the members of a Service listen on."""

    port: int | None = None


class EndpointSlice(KubeObject, frozen=True):
    """Members of a Service."""

    endpoints: tuple[Endpoint, ...] = ()
    ports: tuple[EndpointPort, ...] = ()


DEVSERVERS = Kind(DevServerObject, "DevServer", "devservers", GROUP, VERSION)
DEVSERVERFLAVORS = Kind(
    DevServerFlavor, "DevServerFlavor", "devserverflavors", GROUP, VERSION, namespaced=False
)
USERS = Kind(DevServerUser, "DevServerUser", "devserverusers", GROUP, VERSION, namespaced=False)
SESSIONS = Kind(DevServerSession, "DevServerSession", "devserversessions", GROUP, VERSION)
LOGIN_POLICIES = Kind(
    DevServerLoginPolicy, "DevServerLoginPolicy", "devserverloginpolicies", GROUP, VERSION, namespaced=False
)
USER_REQUESTS = Kind(DevServerUserRequest, "DevServerUserRequest", "devserveruserrequests", GROUP, VERSION)
DEPLOYMENTS = Kind(ServerDeployment, "Deployment", "deployments", "apps")
STATEFUL_SETS = Kind(ServerStatefulSet, "StatefulSet", "statefulsets", "apps")
ENDPOINT_SLICES = Kind(EndpointSlice, "EndpointSlice", "endpointslices", "discovery.k8s.io")
VOLUMES = Kind(PersistentVolume, "PersistentVolume", "persistentvolumes", namespaced=False)
STORAGE_CLASSES = Kind(StorageClass, "StorageClass", "storageclasses", "storage.k8s.io", namespaced=False)
