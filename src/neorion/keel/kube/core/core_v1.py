"""The small core kinds: namespaces, accounts, configuration, services, volumes and quotas."""

from base64 import b64decode
from binascii import Error as NotBase64

from msgspec import field

from neorion.keel.base import Invalid
from neorion.keel.kube.kinds import Kind
from neorion.keel.kube.objects import Condition, KubeObject, KubeStruct


class PhaseStatus(KubeStruct, frozen=True):
    """A status that consists of a phase."""

    phase: str = ""


class Namespace(KubeObject, frozen=True):
    """A namespace: a scope for names and permissions."""

    status: PhaseStatus = PhaseStatus()


class ServiceAccount(KubeObject, frozen=True):
    """The identity of a pod towards the API."""


class ConfigMap(KubeObject, frozen=True):
    """Configuration texts for pods."""

    data: dict[str, str] = field(default_factory=dict)
    binary_data: dict[str, str] = field(default_factory=dict)
    immutable: bool | None = None


class Secret(KubeObject, frozen=True):
    """Texts that stay out of logs. `data` is Base64; `string_data` can only be written."""

    type: str = ""
    data: dict[str, str] = field(default_factory=dict)
    string_data: dict[str, str] = field(default_factory=dict)
    immutable: bool | None = None

    def value(self, name: str) -> bytes | None:
        text = self.data.get(name)
        try:
            return None if text is None else b64decode(text, validate=True)
        except NotBase64:
            raise Invalid(
                "kube.base64",
                f'"{name}" of Secret {self.meta.key} is not Base64.',
                hint="Write it by stringData.",
            ) from None

    def __repr__(self) -> str:
        return f"Secret({self.meta.key}, {sorted(self.data)})"


class ServicePort(KubeStruct, frozen=True):
    """A port of a Service and its target."""

    port: int
    name: str = ""
    protocol: str = "TCP"
    target_port: int | str | None = None
    node_port: int = 0


class ServiceSpec(KubeStruct, frozen=True):
    """The desired state of a Service."""

    type: str = ""
    selector: dict[str, str] = field(default_factory=dict)
    ports: tuple[ServicePort, ...] = ()
    cluster_ip: str = field(name="clusterIP", default="")


class Ingress(KubeStruct, frozen=True):
    """An address of a load balancer."""

    ip: str = ""
    hostname: str = ""


class LoadBalancer(KubeStruct, frozen=True):
    """The load balancer of a Service, once it exists."""

    ingress: tuple[Ingress, ...] = ()


class ServiceStatus(KubeStruct, frozen=True):
    """The observed state of a Service."""

    load_balancer: LoadBalancer = LoadBalancer()


class Service(KubeObject, frozen=True):
    """A name and an address for a set of pods."""

    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()


class VolumeResources(KubeStruct, frozen=True):
    """The requested size of a volume."""

    requests: dict[str, str] = field(default_factory=dict)


class PersistentVolumeClaimSpec(KubeStruct, frozen=True):
    """The requested properties of a volume."""

    access_modes: tuple[str, ...] = ()
    resources: VolumeResources = VolumeResources()
    storage_class_name: str | None = None
    volume_name: str = ""


class PersistentVolumeClaimStatus(KubeStruct, frozen=True):
    """The observed state of a claim."""

    phase: str = ""
    capacity: dict[str, str] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()


class PersistentVolumeClaim(KubeObject, frozen=True):
    """A PersistentVolumeClaim: a request for a volume that outlives pods."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class ResourceQuotaSpec(KubeStruct, frozen=True):
    """The limits of a quota."""

    hard: dict[str, str] = field(default_factory=dict)


class ResourceQuotaStatus(KubeStruct, frozen=True):
    """The limits of a quota and the amounts in use."""

    hard: dict[str, str] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)


class ResourceQuota(KubeObject, frozen=True):
    """The limits of a namespace."""

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


NAMESPACE = Kind(Namespace, "Namespace", "namespaces", namespaced=False)
SERVICE_ACCOUNT = Kind(ServiceAccount, "ServiceAccount", "serviceaccounts")
CONFIG_MAP = Kind(ConfigMap, "ConfigMap", "configmaps", whole=True)
SECRET = Kind(Secret, "Secret", "secrets", whole=True)
SERVICE = Kind(Service, "Service", "services")
CLAIM = Kind(PersistentVolumeClaim, "PersistentVolumeClaim", "persistentvolumeclaims")
RESOURCE_QUOTA = Kind(ResourceQuota, "ResourceQuota", "resourcequotas")
