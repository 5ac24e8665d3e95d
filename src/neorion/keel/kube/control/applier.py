"""The applier of writes: sends only differences, checks the fence first, and updates the informers at once."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeVar, cast

import msgspec

from neorion.keel.base import Conflict, NotFound
from neorion.keel.kube.control.apply_hash import DesiredManifest
from neorion.keel.kube.control.contested import RepairLimits
from neorion.keel.kube.control.election import UNFENCED, Fence
from neorion.keel.kube.control.metrics_port import UNMEASURED, ControlMetricsSink
from neorion.keel.kube.control.reflector import InformerFactory
from neorion.keel.kube.errors import InvalidObject
from neorion.keel.kube.interface import DeleteOptions, KubeApi, MergePatch
from neorion.keel.kube.kinds import Kind, Manifest
from neorion.keel.kube.objects import KubeObject, KubeStruct, ObjectKey, ObjectMeta

T = TypeVar("T", bound=KubeObject)

# Objects of kinds without generations, whose last apply must be remembered: about 15 MB when full.
REMEMBERED_MAX: Final = 50_000


class HasStatus(Protocol):
    """An object with a status of its own."""

    @property
    def meta(self) -> ObjectMeta: ...

    @property
    def status(self) -> KubeStruct: ...


R = TypeVar("R", bound=HasStatus)


class Applier:
    """Writes objects to the API server. Each method takes the observed object, and does nothing if nothing differs.

    Every write checks the fence first. The server rejects it as a Conflict if the object has changed since it was
    observed, so a late write, or one of a former leader, does no harm. Responses update the informers at once.
    """

    def __init__(
        self,
        api: KubeApi,
        manager: str,
        informers: InformerFactory,
        fence: Fence = UNFENCED,
        measures: ControlMetricsSink = UNMEASURED,
    ) -> None:
        self.manager = manager
        self._api = api
        self._informers = informers
        self._fence = fence
        self._measures = measures
        self._remembered: dict[tuple[str, ObjectKey], int] = {}
        self._repairs = RepairLimits(informers.clock)

    async def apply(self, kind: Kind[T], manifest: Manifest | T, observed: T | None) -> T:
        """Server-side apply, unless this manifest was applied last and the object is unchanged since.

        An object that another writer changes after each apply is applied ever more rarely: `ContestedObject`.
        """
        wanted = DesiredManifest.of(kind.manifest(manifest))
        if observed is not None:
            if self._stands(kind, wanted, observed):
                return observed
            self._repairs.check((kind.resource, observed.meta.key), wanted.hashes)
        self._begin("apply", kind)
        body = wanted.with_annotation(None if observed is None else observed.meta)
        with _replaced_is_conflict():
            written = await self._api.apply(kind, body, self.manager, force=True)
        if observed is not None and _differed(wanted, observed.meta, written.meta):
            self._repairs.repaired((kind.resource, written.meta.key), wanted.hashes)
        if not wanted.is_last_applied(written.meta):
            self._remember(kind, wanted, written.meta)
        return self._observed(kind, written)

    async def write_status(self, kind: Kind[R], observed: R, status: KubeStruct) -> R:
        """Patches the fields of the status that differ; fields that are absent in `status` are removed."""
        # Mostly nothing differs, and a comparison is much cheaper than a difference.
        if observed.status == status or not (change := difference(_plain(observed.status), _plain(status))):
            return observed
        self._begin("status", kind)
        meta = observed.meta
        patch = MergePatch({"metadata": {"resourceVersion": meta.resource_version}, "status": change})
        written = await self._api.patch(kind, meta.name, patch, meta.namespace, "status")
        return cast("R", self._observed(cast("Kind[Any]", kind), cast("Any", written)))

    async def set_finalizer(self, kind: Kind[T], observed: T, name: str, *, wanted: bool) -> T:
        """Adds or removes a finalizer. Removing the last one may delete the object."""
        meta = observed.meta
        if (name in meta.finalizers) is wanted:
            return observed
        others = [one for one in meta.finalizers if one != name]
        finalizers = [*others, name] if wanted else others
        self._begin("finalizer", kind)
        patch = MergePatch({"metadata": {"resourceVersion": meta.resource_version, "finalizers": finalizers}})
        written = await self._api.patch(kind, meta.name, patch, meta.namespace)
        # The server may return the object that it has just removed. Informers wait for the watch event.
        return written if meta.deleted else self._observed(kind, written)

    async def delete(self, kind: Kind[T], observed: T | None) -> None:
        """Deletes the object in the observed version; ignores one that is gone or being deleted."""
        if observed is None or observed.meta.deleted:
            return
        self._begin("delete", kind)
        meta = observed.meta
        seen = DeleteOptions(uid=meta.uid, version=meta.resource_version)
        try:
            await self._api.delete(kind, meta.name, meta.namespace, seen)
        except NotFound:
            return

    def _stands(self, kind: Kind[T], wanted: DesiredManifest, observed: T) -> bool:
        meta = observed.meta
        if not wanted.has_metadata(meta):
            return False
        remembered = self._remembered.get((kind.resource, meta.key))
        if remembered == _print(wanted, meta) or wanted.is_last_applied(meta):
            return True
        seen = wanted.matches_observed(observed)
        if seen:
            self._remember(kind, wanted, meta)
        return seen

    def _remember(self, kind: Kind[T], wanted: DesiredManifest, written: ObjectMeta) -> None:
        # Removed first, so that the oldest entry comes first.
        self._remembered.pop((kind.resource, written.key), None)
        self._remembered[kind.resource, written.key] = _print(wanted, written)
        if len(self._remembered) > REMEMBERED_MAX:
            del self._remembered[next(iter(self._remembered))]

    def _begin(self, verb: str, kind: Kind[Any]) -> None:
        self._fence.check()
        self._measures.wrote(verb, kind.resource)

    def _observed(self, kind: Kind[T], written: T) -> T:
        self._informers.observe(kind, written)
        return written


@contextmanager
def _replaced_is_conflict() -> Generator[None]:
    """Turns a changed uid, which the server reports as an invalid object, into a Conflict."""
    try:
        yield
    except InvalidObject as error:
        if any(cause.field == "metadata.uid" for cause in error.causes):
            raise Conflict(
                "kube.replaced", error.sentence, hint="Read the object again and decide again."
            ) from error
        raise


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The merge patch from one to the other; empty if they are equal."""
    change: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            if inner := difference(cast("dict[str, Any]", old), cast("dict[str, Any]", value)):
                change[name] = inner
        elif name not in before or old != value:
            change[name] = value
    return change


def _plain(part: KubeStruct) -> dict[str, Any]:
    return msgspec.to_builtins(part)


def _differed(wanted: DesiredManifest, observed: ObjectMeta, written: ObjectMeta) -> bool:
    """True if the apply changed more than its own annotation. Without generations it counts as if it did."""
    same = written.generation > 0 and written.generation == observed.generation
    return not (same and wanted.has_metadata(observed))


def _print(wanted: DesiredManifest, meta: ObjectMeta) -> int:
    """A 64-bit hash of a manifest and of the version that it led to. Many are kept, and only compared."""
    return hash((wanted.hashes, meta.uid, meta.generation or meta.resource_version))
