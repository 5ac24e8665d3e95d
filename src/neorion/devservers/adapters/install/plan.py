"""What an application of manifests would change, tried on the server before anything is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from neorion.devservers.adapters.install.kinds import MONITORING, Manifest, kind_of
from neorion.devservers.model import GROUP
from neorion.keel.base import Conflict, NotFound
from neorion.keel.kube import Kind, UnknownKind
from neorion.keel.kube.client import Client

MANAGER: Final = "devctl"
# The server's own, and what it counts: another value of these is no other object.
_BOOKKEEPING: Final = frozenset(
    {"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"}
)


class Outcome(StrEnum):
    """What becomes of an object."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    LEFT_OUT = "left out"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Step:
    """One object of an installation, and what becomes of it."""

    kind: str
    name: str
    namespace: str
    outcome: Outcome


async def plan(client: Client, manifests: Sequence[Manifest], *, force: bool) -> tuple[Step, ...]:
    """One step for each manifest, in their order. Raises what the server would refuse; nothing is written.

    What lies in a namespace or is of a kind that is only to come cannot be tried. Kinds of monitoring that the cluster
    does not have are left out.
    """
    rehearsal = client.rehearsing()
    coming = frozenset(
        [
            one["metadata"]["name"]
            for one in manifests
            if one["kind"] == "Namespace" and await _standing(client, one) is None
        ]
    )
    steps: list[Step] = []
    for manifest in manifests:
        kind = kind_of(manifest)
        key = kind.key(manifest)
        try:
            before = await _standing(client, manifest)
            outcome = Outcome.CREATED
            if key.namespace not in coming:
                after = await _tried(rehearsal, kind.raw, manifest, force=force)
                outcome = _outcome(before, after)
        except UnknownKind:
            outcome = _without_kind(kind)
        steps.append(Step(kind.name, key.name, key.namespace, outcome))
    return tuple(steps)


def _outcome(before: dict[str, Any] | None, after: dict[str, Any]) -> Outcome:
    if before is None:
        return Outcome.CREATED
    return Outcome.UNCHANGED if _content(before) == _content(after) else Outcome.CHANGED


def _without_kind(kind: Kind[Any]) -> Outcome:
    """Our own kinds come with the installation, those of monitoring with the Prometheus operator or not at all."""
    if kind.group in {MONITORING, GROUP}:
        return Outcome.LEFT_OUT if kind.group == MONITORING else Outcome.CREATED
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


async def _tried(
    rehearsal: Client, kind: Kind[dict[str, Any]], manifest: Manifest, *, force: bool
) -> dict[str, Any]:
    try:
        return await rehearsal.apply(kind, manifest, MANAGER, force=force)
    except Conflict as error:
        raise Conflict(
            "devservers.edited",
            f"Somebody else has changed {kind.name} {manifest['metadata']['name']}: {error.sentence}",
            hint="Bring your change into an overlay of your own, or take it back with --force.",
        ) from error


def _content(body: dict[str, Any]) -> dict[str, Any]:
    meta = {name: value for name, value in body["metadata"].items() if name not in _BOOKKEEPING}
    return {**{name: value for name, value in body.items() if name != "status"}, "metadata": meta}
