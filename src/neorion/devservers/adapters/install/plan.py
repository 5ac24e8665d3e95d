"""Plan of an installation: the changes that manifests would make, by a dry run on the server."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from neorion.devservers.adapters.install.resource_kinds import MADE_ONCE, OPTIONAL, Manifest, kind_of
from neorion.devservers.model import GROUP
from neorion.keel.base import Conflict, NotFound
from neorion.keel.kube import Kind, UnknownKind
from neorion.keel.kube.client import Client

MANAGER: Final = "devctl"
# The server's own, and what it counts: another value of these is no other object.
_BOOKKEEPING: Final = frozenset(
    {"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"}
)


class ChangeType(StrEnum):
    """Kind of change to an object."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    LEFT_OUT = "left out"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One object of an installation, and what becomes of it."""

    kind: str
    name: str
    namespace: str
    outcome: ChangeType


async def plan(client: Client, manifests: Sequence[Manifest], *, force: bool) -> tuple[PlannedChange, ...]:
    """One step for each manifest, in their order. Raises what the server would refuse; nothing is written.

    What is made once and is there already is let be. What lies in a namespace or is of a kind that is only to come
    cannot be tried. Kinds of monitoring that the cluster does not have are left out.
    """
    coming = [
        one["metadata"]["name"]
        for one in manifests
        if one["kind"] == "Namespace" and _gone(await _standing(client, one))
    ]
    trial = _DryRun(client, client.rehearsing(), frozenset(coming), force)
    return tuple([await trial.step(manifest) for manifest in manifests])


@dataclass(frozen=True, slots=True)
class _DryRun:
    """One cluster as it is, and as it would be; `coming` are the namespaces that it does not have yet."""

    client: Client
    rehearsal: Client
    coming: frozenset[str]
    force: bool

    async def step(self, manifest: Manifest) -> PlannedChange:
        kind = kind_of(manifest)
        key = kind.key(manifest)
        try:
            outcome = await self._outcome(kind, manifest)
        except UnknownKind:
            outcome = _without_kind(kind)
        return PlannedChange(kind.name, key.name, key.namespace, outcome)

    async def _outcome(self, kind: Kind[Any], manifest: Manifest) -> ChangeType:
        before = await _standing(self.client, manifest)
        if before is not None and kind.name in MADE_ONCE:
            return ChangeType.UNCHANGED
        if kind.key(manifest).namespace in self.coming:
            return ChangeType.CREATED
        after = await self._tried(kind.raw, manifest, before)
        if before is None:
            return ChangeType.CREATED
        return ChangeType.UNCHANGED if _content(before) == _content(after) else ChangeType.CHANGED

    async def _tried(
        self, kind: Kind[dict[str, Any]], manifest: Manifest, before: dict[str, Any] | None
    ) -> dict[str, Any]:
        try:
            return await self.rehearsal.apply(kind, manifest, MANAGER, force=self.force)
        except Conflict as error:
            # To the server, who applies the same with kubectl has changed what it fills with defaults.
            forced = await self.rehearsal.apply(kind, manifest, MANAGER, force=True)
            if before is not None and _content(before) == _content(forced):
                return forced
            raise Conflict(
                "devservers.edited",
                f"Another manager has changed {kind.name} {manifest['metadata']['name']}: {error.sentence}",
                hint="Bring your change into an overlay of your own, or take it back with --force.",
            ) from error


def _without_kind(kind: Kind[Any]) -> ChangeType:
    """Our own kinds come with the installation. Those of the Prometheus operator and of Karpenter come with these."""
    if kind.group in OPTIONAL:
        return ChangeType.LEFT_OUT
    if kind.group == GROUP:
        return ChangeType.CREATED
    raise UnknownKind(f"The cluster does not know {kind.name} of {kind.api_version}.")


async def _standing(client: Client, manifest: Manifest) -> dict[str, Any] | None:
    kind = kind_of(manifest)
    key = kind.key(manifest)
    try:
        return await client.get(kind.raw, key.name, key.namespace)
    except UnknownKind:
        raise
    except NotFound:
        return None


def _gone(space: dict[str, Any] | None) -> bool:
    """A namespace on its way out takes with it all that stands there unchanged."""
    if space is not None and "deletionTimestamp" in space["metadata"]:
        raise Conflict(
            "devservers.leaving",
            f"The namespace {space['metadata']['name']} is just being deleted.",
            hint="Try again when it is gone.",
        )
    return space is None


def _content(body: dict[str, Any]) -> dict[str, Any]:
    meta = {name: value for name, value in body["metadata"].items() if name not in _BOOKKEEPING}
    return {**{name: value for name, value in body.items() if name != "status"}, "metadata": meta}
