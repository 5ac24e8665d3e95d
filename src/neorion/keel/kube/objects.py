"""Parts that all Kubernetes objects share, limited to the fields that are read."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec import Struct, field

from neorion.keel.base import Instant, Invalid


class ObjectKey(NamedTuple):
    """The namespace and name of an object; cluster-wide objects have no namespace."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class KubeStruct(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A part of an object. Undeclared fields are skipped when it is decoded.

    A field that equals its default is not written: a partial object is a partial manifest. A field whose zero differs
    from its absence is declared `int | None`.
    """


class OwnerReference(KubeStruct, frozen=True):
    """An object that owns this one. Deleting the owner deletes this object."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(KubeStruct, frozen=True):
    """The metadata of an object, without managedFields: they are large, and the server maintains them."""

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
        """The owner that manages this object."""
        return next((owner for owner in self.owners if owner.controller), None)


class KubeObject(KubeStruct, frozen=True):
    """An object with its metadata only; kinds add the fields that their users read."""

    meta: ObjectMeta = field(name="metadata", default=ObjectMeta())


class Condition(KubeStruct, frozen=True):
    """One aspect of an object's state, reported by its controller: `status` is "True", "False" or "Unknown"."""

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
    """The condition of one type, if it is set."""
    return next((one for one in conditions if one.type == kind), None)


def instant(text: str) -> Instant:
    """Parses a time of the API, with or without a fraction of the second."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(
            "kube.time", f'"{text[:40]}" is not a valid time.', hint='Write it as "2026-01-31T12:00:00Z".'
        ) from None
    since = moment.replace(tzinfo=moment.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return Instant(((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000)


def time_text(moment: Instant) -> str:
    """Formats a time as most fields have it, in whole seconds."""
    return _datetime(moment).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time_text(moment: Instant) -> str:
    """Formats a time as Leases and Events have it, with six digits, because the server rejects fewer."""
    return _datetime(moment).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _datetime(moment: Instant) -> datetime:
    seconds, rest = divmod(moment.ns, 1_000_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1_000)
