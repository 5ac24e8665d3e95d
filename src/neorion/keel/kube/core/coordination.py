"""The kinds controllers speak by: Leases, Events, and the definitions of further kinds."""

from msgspec import field

from neorion.keel.kube.kinds import Kind
from neorion.keel.kube.objects import Condition, KubeObject, KubeStruct


class LeaseSpec(KubeStruct, frozen=True):
    """Who holds a lease, since when, and for how long after its last renewal. Times have microseconds."""

    holder_identity: str = ""
    lease_duration_s: int | None = field(name="leaseDurationSeconds", default=None)
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(KubeObject, frozen=True):
    """A right that one holder has at a time."""

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
    """How often the same event was seen, and when last."""

    count: int
    last_observed_time: str


class Event(KubeObject, frozen=True):
    """Something worth telling the people who look at an object."""

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
    """What a kind is called."""

    kind: str = ""
    plural: str = ""


class CustomResourceDefinitionSpec(KubeStruct, frozen=True):
    """Which kind is defined."""

    group: str = ""
    scope: str = ""
    names: CustomResourceDefinitionNames = CustomResourceDefinitionNames()


class CustomResourceDefinitionStatus(KubeStruct, frozen=True):
    """Whether the kind can be used: conditions Established and NamesAccepted."""

    conditions: tuple[Condition, ...] = ()


class CustomResourceDefinition(KubeObject, frozen=True):
    """A CustomResourceDefinition, without its schemas: they are large, and written as manifests."""

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
