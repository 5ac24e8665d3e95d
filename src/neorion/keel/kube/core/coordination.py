"""The kinds controllers speak by: Leases, Events, and the definitions of further kinds."""

from msgspec import field

from neorion.keel.kube.kinds import Kind
from neorion.keel.kube.objects import Condition, Object, Part


class LeaseSpec(Part, frozen=True):
    """Who holds a lease, since when, and for how long after its last renewal. Times have microseconds."""

    holder_identity: str = ""
    lease_duration_s: int | None = field(name="leaseDurationSeconds", default=None)
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(Object, frozen=True):
    """A right that one holder has at a time."""

    spec: LeaseSpec = LeaseSpec()


class Reference(Part, frozen=True):
    """Another object, by name."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""


class Series(Part, frozen=True):
    """How often the same event was seen, and when last."""

    count: int
    last_observed_time: str


class Event(Object, frozen=True):
    """Something worth telling the people who look at an object."""

    event_time: str | None = None
    regarding: Reference = Reference()
    related: Reference | None = None
    type: str = ""
    reason: str = ""
    action: str = ""
    note: str = ""
    reporting_controller: str = ""
    reporting_instance: str = ""
    series: Series | None = None


class DefinitionNames(Part, frozen=True):
    """What a kind is called."""

    kind: str = ""
    plural: str = ""


class DefinitionSpec(Part, frozen=True):
    """Which kind is defined."""

    group: str = ""
    scope: str = ""
    names: DefinitionNames = DefinitionNames()


class DefinitionStatus(Part, frozen=True):
    """Whether the kind can be used: conditions Established and NamesAccepted."""

    conditions: tuple[Condition, ...] = ()


class Definition(Object, frozen=True):
    """A CustomResourceDefinition, without its schemas: they are large, and written as manifests."""

    spec: DefinitionSpec = DefinitionSpec()
    status: DefinitionStatus = DefinitionStatus()


LEASE = Kind(Lease, "Lease", "leases", "coordination.k8s.io", whole=True)
EVENT = Kind(Event, "Event", "events", "events.k8s.io")
DEFINITION = Kind(
    Definition,
    "CustomResourceDefinition",
    "customresourcedefinitions",
    "apiextensions.k8s.io",
    namespaced=False,
)
