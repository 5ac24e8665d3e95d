"""Kinds for coordination: Leases, Events, and CustomResourceDefinitions."""

from msgspec import field

from neorion.keel.kube.kinds import Kind
from neorion.keel.kube.objects import Condition, KubeObject, KubeStruct


class LeaseSpec(KubeStruct, frozen=True):
    """The holder of a lease, its start, and its duration after the last renewal. Times have microseconds."""

    holder_identity: str = ""
    lease_duration_s: int | None = field(name="leaseDurationSeconds", default=None)
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(KubeObject, frozen=True):
    """A lock with one holder at a time."""

    spec: LeaseSpec = LeaseSpec()


class ObjectReference(KubeStruct, frozen=True):
    """Another object, by name."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""


class EventSeries(KubeStruct, frozen=True):
    """The number of occurrences of an event, and the time of the last one."""

    count: int
    last_observed_time: str


class Event(KubeObject, frozen=True):
    """A message to the people who inspect an object."""

    event_time: str | None = None
    regarding: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    type: str = ""
    reason: str = ""
    action: str = ""
    note: str = ""
    reporting_controller: str = ""
    reporting_instance: str = ""
    series: EventSeries | None = None


class CustomResourceDefinitionNames(KubeStruct, frozen=True):
    """The names of a custom kind."""

    kind: str = ""
    plural: str = ""


class CustomResourceDefinitionSpec(KubeStruct, frozen=True):
    """The group, scope and names of a custom kind."""

    group: str = ""
    scope: str = ""
    names: CustomResourceDefinitionNames = CustomResourceDefinitionNames()


class CustomResourceDefinitionStatus(KubeStruct, frozen=True):
    """The conditions of a definition: Established and NamesAccepted."""

    conditions: tuple[Condition, ...] = ()


class CustomResourceDefinition(KubeObject, frozen=True):
    """A CustomResourceDefinition without its schemas, which are large and written as manifests."""

    spec: CustomResourceDefinitionSpec = CustomResourceDefinitionSpec()
    status: CustomResourceDefinitionStatus = CustomResourceDefinitionStatus()


LEASE = Kind(Lease, "Lease", "leases", "coordination.k8s.io", whole=True)
EVENT = Kind(Event, "Event", "events", "events.k8s.io")
DEFINITION = Kind(
    CustomResourceDefinition,
    "CustomResourceDefinition",
    "customresourcedefinitions",
    "apiextensions.k8s.io",
    namespaced=False,
)
