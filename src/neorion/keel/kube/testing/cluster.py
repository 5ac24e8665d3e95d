"""The objects of a cluster in memory, and the rules by which an API server changes them."""

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from neorion.keel.base import Error
from neorion.keel.clock import Clock
from neorion.keel.kube.errors import Status, StatusCause, StatusDetails, refusal
from neorion.keel.kube.kinds import Kind
from neorion.keel.kube.objects import ObjectKey, time_text
from neorion.keel.kube.testing import field_ownership
from neorion.keel.kube.testing.field_ownership import Json
from neorion.keel.kube.testing.history import Change, WatchHistory
from neorion.keel.kube.testing.patches import merged

# Of the core group, only these kinds have generations.
_CORE_WITH_GENERATION: Final = frozenset({"pods", "replicationcontrollers"})
_GROUPS_WITHOUT_GENERATION: Final = frozenset(
    {"coordination.k8s.io", "events.k8s.io", "rbac.authorization.k8s.io", "storage.k8s.io"}
)
# Fields that clients cannot change.
_SERVERS_OWN: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)


@dataclass(slots=True)
class StoredObject:
    """An object, and the owners of its fields."""

    body: Json
    owners: field_ownership.Owners = field(default_factory=dict[str, set[field_ownership.Path]])


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A write before it happens; an admission hook may raise to reject it."""

    user: str
    verb: str
    resource: str
    key: ObjectKey
    before: Json | None
    after: Json | None


class MemoryCluster:
    """The state of a cluster, shared by many clients.

    Stored bodies are never changed in place, so callers may keep them.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._uids = count(1)
        self._objects: dict[str, tuple[Kind[Any], dict[ObjectKey, StoredObject]]] = {}
        self.history = WatchHistory()
        self.admit: Callable[[WriteRequest], None] = lambda _: None
        # Writes that changed something, by user.
        self.writes: Counter[str] = Counter()

    def entries(self, kind: Kind[Any]) -> dict[ObjectKey, StoredObject]:
        return self._objects.setdefault(kind.resource, (kind, {}))[1]

    def entry(self, kind: Kind[Any], key: ObjectKey) -> StoredObject:
        found = self.entries(kind).get(key)
        if found is None:
            raise _not_found(kind, key)
        return found

    def create(self, kind: Kind[Any], body: Json, *, user: str, manager: str) -> Json:
        body = self._named(body)
        key = _key(kind, body)
        if key in self.entries(kind):
            raise refusal(
                Status(
                    code=409, reason="AlreadyExists", message=f'{kind.resource} "{key.name}" already exists.'
                )
            )
        after = deepcopy(body)
        after.pop("status", None)
        owned, _ = field_ownership.changed({}, after)
        return self._commit(kind, key, None, StoredObject(after, {manager: owned}), (user, "create"))

    def update(self, kind: Kind[Any], body: Json, *, status: bool, user: str, manager: str) -> Json:
        """Replaces the object, or its status alone. A version in the body must be the newest."""
        key = _key(kind, body)
        entry = self.entry(kind, key)
        _check_preconditions(kind, entry.body, body.get("metadata", {}))
        after = _merged_parts(entry.body, body, status=status)
        owners = {name: set(theirs) for name, theirs in entry.owners.items()}
        changed, removed = field_ownership.changed(entry.body, after)
        field_ownership.disown(owners, changed | removed, spare=manager)
        field_ownership.take_over(owners, manager, changed, applied=False)
        return self._commit(kind, key, entry, StoredObject(after, owners), (user, "update"))

    def apply(
        self, kind: Kind[Any], body: Json, *, status: bool, force: bool, user: str, manager: str
    ) -> Json:
        """Server-side apply: sets the manager's fields and removes those that it no longer applies."""
        key = _key(kind, body)
        entry = self.entries(kind).get(key)
        meta: Json = body.get("metadata", {})
        if entry is None:
            if status:
                raise _not_found(kind, key)
            if meta.get("uid"):
                raise _conflict(f'{kind.resource} "{key.name}" with the uid {meta["uid"]} is not there.')
        elif meta.get("uid", entry.body["metadata"]["uid"]) != entry.body["metadata"]["uid"]:
            details = StatusDetails(name=key.name, causes=(StatusCause(field="metadata.uid"),))
            raise refusal(Status(code=422, message="The uid of an object never changes.", details=details))
        else:
            _check_preconditions(kind, entry.body, meta)
        entry_owners, live = (entry.owners, entry.body) if entry is not None else ({}, {})
        owner = f"{manager}/status" if status else manager
        wanted = (
            _only_status(body) if status else {name: part for name, part in body.items() if name != "status"}
        )
        after, conflicts = field_ownership.owned_by_apply(entry_owners, owner, live, wanted)
        if conflicts and not force:
            other, path = conflicts[0]
            raise _conflict(f'{_dotted(path)} of {kind.resource} "{key.name}" belongs to "{other}".')
        owned = set(field_ownership.leaves(wanted))
        owners = {name: set(theirs) for name, theirs in entry_owners.items()}
        field_ownership.disown(owners, {path for _, path in conflicts}, spare=owner)
        field_ownership.take_over(owners, owner, owned, applied=True)
        for name in ("apiVersion", "kind"):
            after[name] = body.get(name, "")
        after["metadata"] = {**after.get("metadata", {}), "name": key.name} | (
            {"namespace": key.namespace} if key.namespace else {}
        )
        return self._commit(kind, key, entry, StoredObject(after, owners), (user, "apply"))

    def patch(
        self,
        kind: Kind[Any],
        key: ObjectKey,
        change: Callable[[Json], Json],
        *,
        status: bool,
        user: str,
        manager: str,
    ) -> Json:
        body = change(deepcopy(self.entry(kind, key).body))
        return self.update(kind, body, status=status, user=user, manager=manager)

    def delete(
        self, kind: Kind[Any], key: ObjectKey, preconditions: Json, *, grace: int | None, user: str
    ) -> Json:
        """Deletes an object at once, or marks it until its finalizers are removed or its grace period is over."""
        entry = self.entry(kind, key)
        _check_preconditions(kind, entry.body, preconditions)
        meta = entry.body["metadata"]
        runs = kind.resource == "pods" and entry.body.get("spec", {}).get("nodeName") and grace != 0
        if not (meta.get("finalizers") or runs):
            return self._remove(kind, key, entry, user)
        if "deletionTimestamp" in meta:
            return entry.body
        marks = {"deletionTimestamp": self._now(), "deletionGracePeriodSeconds": grace or 0}
        if _counts_generations(kind):
            marks["generation"] = meta["generation"] + 1
        after = merged(entry.body, {"metadata": marks})
        return self._store(kind, key, entry, StoredObject(after, entry.owners), (user, "delete"))

    def collect(self) -> int:
        """Runs the garbage collector once: removes objects whose owners are all gone. Returns their number."""
        alive = {
            entry.body["metadata"]["uid"] for _, things in self._objects.values() for entry in things.values()
        }
        orphans = [
            (kind, key)
            for kind, things in self._objects.values()
            for key, entry in things.items()
            if (owners := entry.body["metadata"].get("ownerReferences"))
            and not any(owner["uid"] in alive for owner in owners)
        ]
        for kind, key in orphans:
            self.delete(kind, key, {}, grace=0, user="garbage-collector")
        return len(orphans)

    def _commit(
        self,
        kind: Kind[Any],
        key: ObjectKey,
        before: StoredObject | None,
        after: StoredObject,
        act: tuple[str, str],
    ) -> Json:
        """Sets the fields that belong to the server, and stores the object if anything changes."""
        after.body["metadata"] = meta = dict[str, Any](after.body.get("metadata", {}))
        for name in _SERVERS_OWN:
            meta.pop(name, None)
        if before is None:
            meta |= {"uid": f"uid-{next(self._uids)}", "creationTimestamp": self._now()}
            if _counts_generations(kind):
                meta["generation"] = 1
        else:
            old: Json = before.body["metadata"]
            meta |= {name: old[name] for name in _SERVERS_OWN if name in old}
            meta["resourceVersion"] = old["resourceVersion"]
            if after.body == before.body:
                before.owners = after.owners
                return before.body
            if _counts_generations(kind) and _spec(after.body) != _spec(before.body):
                meta["generation"] = old["generation"] + 1
        if "deletionTimestamp" in meta and not meta.get("finalizers") and before is not None:
            return self._remove(kind, key, before, act[0])
        return self._store(kind, key, before, after, act)

    def _store(
        self,
        kind: Kind[Any],
        key: ObjectKey,
        before: StoredObject | None,
        after: StoredObject,
        act: tuple[str, str],
    ) -> Json:
        user, verb = act
        old = before.body if before is not None else None
        self.admit(WriteRequest(user, verb, kind.resource, key, old, after.body))
        version = self.history.next_version()
        after.body["metadata"] = {**after.body["metadata"], "resourceVersion": str(version)}
        self.entries(kind)[key] = after
        self.writes[user] += 1
        self.history.add(Change(version, kind.resource, old, after.body))
        return after.body

    def _remove(self, kind: Kind[Any], key: ObjectKey, entry: StoredObject, user: str) -> Json:
        self.admit(WriteRequest(user, "delete", kind.resource, key, entry.body, None))
        version = self.history.next_version()
        del self.entries(kind)[key]
        last = merged(entry.body, {"metadata": {"resourceVersion": str(version)}})
        self.writes[user] += 1
        self.history.add(Change(version, kind.resource, last, None))
        return last

    def _named(self, body: Json) -> Json:
        meta: Json = body.get("metadata", {})
        if meta.get("name") or not meta.get("generateName"):
            return body
        return {**body, "metadata": {**meta, "name": f"{meta['generateName']}{next(self._uids):05x}"}}

    def _now(self) -> str:
        return time_text(self._clock.now())


def _counts_generations(kind: Kind[Any]) -> bool:
    return (
        kind.plural in _CORE_WITH_GENERATION
        if not kind.group
        else kind.group not in _GROUPS_WITHOUT_GENERATION
    )


def _key(kind: Kind[Any], body: Json) -> ObjectKey:
    key = kind.key(body)
    if not key.name:
        raise refusal(Status(code=422, reason="Invalid", message=f"{kind.resource} need a name."))
    return key


def _check_preconditions(kind: Kind[Any], live: Json, wanted: Json) -> None:
    for name in ("resourceVersion", "uid"):
        if wanted.get(name) and wanted[name] != live["metadata"][name]:
            raise _conflict(f'{kind.resource} "{live["metadata"]["name"]}" has changed: {name}.')


def _conflict(sentence: str) -> Error:
    return refusal(Status(code=409, reason="Conflict", message=sentence))


def _not_found(kind: Kind[Any], key: ObjectKey) -> Error:
    sentence = f'{kind.resource} "{key.name}" not found.'
    return refusal(
        Status(code=404, reason="NotFound", message=sentence, details=StatusDetails(name=key.name))
    )


def _merged_parts(live: Json, body: Json, *, status: bool) -> Json:
    """Merges a write into an object: a client writes either the status or everything else."""
    base, top = (live, body) if status else (body, live)
    after = {name: deepcopy(part) for name, part in base.items() if name != "status"}
    if "status" in top:
        after["status"] = deepcopy(top["status"])
    return after


def _only_status(body: Json) -> Json:
    return {"status": body.get("status", {})}


def _spec(body: Json) -> Json:
    return {name: part for name, part in body.items() if name not in ("metadata", "status")}


def _dotted(path: field_ownership.Path) -> str:
    return "".join(f".{step}" if isinstance(step, str) else f"[{','.join(step)}]" for step in path)
