"""What all Kubernetes objects have in common, decoded only as far as somebody reads it."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec import Struct, field

from neorion.keel.base import Instant, Invalid


class ObjectKey(NamedTuple):
    """Which object of a kind: cluster-wide ones have no namespace."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class KubeStruct(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A piece of an object. Fields nobody declared are skipped when it is read.

    What equals its default is not written: a partial object is a partial manifest. A field whose zero means something
    else than its absence is declared `int | None`.
    """


class OwnerReference(KubeStruct, frozen=True):
    """An object that this one belongs to and is collected with."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(KubeStruct, frozen=True):
    """The metadata of an object, without managedFields: they are large, and the server keeps them by itself."""

    name: str = ""
    namespace: str = ""
    generate_name: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owners: tuple[OwnerReference, ...] = field(name="ownerReferences", default=())
    finalizers: tuple[str, ...] = ()
    created: str | None = field(name="creationTimestamp", default=None)
    deleted: str | None = field(name="deletionTimestamp", default=None)
    deletion_grace_s: int | None = field(name="deletionGracePeriodSeconds", default=None)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)

    @property
    def controller(self) -> OwnerReference | None:
        """The one owner that manages this object."""
        return next((owner for owner in self.owners if owner.controller), None)


class KubeObject(KubeStruct, frozen=True):
    """An object with nothing but its metadata; kinds add what their users read."""

    meta: ObjectMeta = field(name="metadata", default=ObjectMeta())


class Condition(KubeStruct, frozen=True):
    """One aspect of an object's state, as its controller sees it: `status` is "True", "False" or "Unknown"."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    changed: str | None = field(name="lastTransitionTime", default=None)

    @property
    def holds(self) -> bool:
        return self.status == "True"


def condition(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """The condition of one type, if the controller has stated it."""
    return next((one for one in conditions if one.type == kind), None)


def instant(text: str) -> Instant:
    """A time of the API, with or without a fraction of the second."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(
            "kube.time", f'"{text[:40]}" is no time.', hint='Write it as "2026-01-31T12:00:00Z".'
        ) from None
    since = moment.replace(tzinfo=moment.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return Instant(((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000)


def time_text(moment: Instant) -> str:
    """The form of most times: whole seconds."""
    return _datetime(moment).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time_text(moment: Instant) -> str:
    """The form of times in Leases and Events: always six digits, because the server refuses fewer."""
    return _datetime(moment).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _datetime(moment: Instant) -> datetime:
    seconds, rest = divmod(moment.ns, 1_000_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1_000)
