"""Gateways, routes and InferencePools, as far as the gateway reads them."""

from typing import Final

from msgspec import field

from neorion.keel.kube import Condition, Kind, KubeObject, KubeStruct

GATEWAY_GROUP: Final = "gateway.networking.k8s.io"
POOL_GROUP: Final = "inference.networking.k8s.io"
# The label by which a slice names its Service.
SERVICE_LABEL: Final = "kubernetes.io/service-name"


class ParentReference(KubeStruct, frozen=True):
    """A Gateway that a route asks for, or that a status is about."""

    name: str
    namespace: str = ""


class ParentStatus(KubeStruct, frozen=True):
    """The conditions of a route or pool at one Gateway, by one controller."""

    parent_ref: ParentReference
    controller_name: str = ""
    conditions: tuple[Condition, ...] = ()


class ParentsStatus(KubeStruct, frozen=True):
    """The status of a route or pool: one entry for each of its Gateways."""

    parents: tuple[ParentStatus, ...] = ()


class Listener(KubeStruct, frozen=True):
    """A port of a Gateway."""

    name: str
    port: int


class GatewaySpec(KubeStruct, frozen=True):
    """The class of a Gateway, and its ports."""

    gateway_class_name: str = ""
    listeners: tuple[Listener, ...] = ()


class GatewayStatus(KubeStruct, frozen=True):
    """The state of a Gateway."""

    conditions: tuple[Condition, ...] = ()


class Gateway(KubeObject, frozen=True):
    """A Gateway."""

    spec: GatewaySpec = GatewaySpec()
    status: GatewayStatus = GatewayStatus()


class BackendReference(KubeStruct, frozen=True):
    """A target of a rule. Its weight is relative to those of its neighbours."""

    name: str
    group: str = ""
    kind: str = "Service"
    namespace: str = ""
    weight: int | None = None


class RouteRule(KubeStruct, frozen=True):
    """A rule of a route, as its targets."""

    backend_refs: tuple[BackendReference, ...] = ()


class HttpRouteSpec(KubeStruct, frozen=True):
    """The Gateways, hosts and rules of a route."""

    parent_refs: tuple[ParentReference, ...] = ()
    hostnames: tuple[str, ...] = ()
    rules: tuple[RouteRule, ...] = ()


class HttpRoute(KubeObject, frozen=True):
    """An HTTPRoute."""

    spec: HttpRouteSpec = HttpRouteSpec()
    status: ParentsStatus = ParentsStatus()


class PoolPort(KubeStruct, frozen=True):
    """A port by its number."""

    number: int


class PoolSelector(KubeStruct, frozen=True):
    """The labels of a pool's pods."""

    match_labels: dict[str, str] = field(default_factory=dict)


class PickerReference(KubeStruct, frozen=True):
    """The Service of the endpoint picker, and what happens to requests while it is away."""

    name: str
    failure_mode: str = "FailClose"


class InferencePoolSpec(KubeStruct, frozen=True):
    """The pods of a pool, their port, and the picker that chooses among them."""

    picker: PickerReference = field(name="endpointPickerRef")
    selector: PoolSelector = PoolSelector()
    target_ports: tuple[PoolPort, ...] = ()


class InferencePool(KubeObject, frozen=True, kw_only=True):
    """An InferencePool."""

    spec: InferencePoolSpec
    status: ParentsStatus = ParentsStatus()


class EndpointConditions(KubeStruct, frozen=True):
    """The readiness of an endpoint; None stands for yes."""

    ready: bool | None = None


class SliceEndpoint(KubeStruct, frozen=True):
    """The addresses of one pod."""

    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions = EndpointConditions()


class EndpointPort(KubeStruct, frozen=True):
    """A port of all endpoints of a slice."""

    port: int = 0


class EndpointSlice(KubeObject, frozen=True):
    """Endpoints of a Service."""

    endpoints: tuple[SliceEndpoint, ...] = ()
    ports: tuple[EndpointPort, ...] = ()

    @property
    def ready(self) -> list[str]:
        """The addresses that take requests, each with the slice's first port."""
        port = self.ports[0].port if self.ports else 0
        ready = [each for each in self.endpoints if each.conditions.ready is not False]
        return [f"{address}:{port}" for each in ready for address in each.addresses[:1]]


GATEWAY: Final = Kind(Gateway, "Gateway", "gateways", GATEWAY_GROUP)
HTTP_ROUTE: Final = Kind(HttpRoute, "HTTPRoute", "httproutes", GATEWAY_GROUP)
INFERENCE_POOL: Final = Kind(InferencePool, "InferencePool", "inferencepools", POOL_GROUP)
ENDPOINT_SLICE: Final = Kind(EndpointSlice, "EndpointSlice", "endpointslices", "discovery.k8s.io")
