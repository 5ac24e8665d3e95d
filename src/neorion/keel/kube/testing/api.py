"""The port `KubeApi` over a cluster in memory, one instance per client."""

import builtins
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, TypeVar

import anyio
import msgspec

from neorion.keel.base import Duration, Error
from neorion.keel.clock import Clock, fault_point
from neorion.keel.kube.core import POD
from neorion.keel.kube.errors import Status, misshapen, refusal
from neorion.keel.kube.interface import (
    ALL,
    ALL_LINES,
    DELETE,
    TOKEN_LIFE,
    Added,
    Bookmark,
    Deleted,
    DeleteOptions,
    JsonPatch,
    ListResult,
    MergePatch,
    Modified,
    Patch,
    PodLogOptions,
    Selector,
    ServiceAccountToken,
    UndecodableObject,
    WatchEvent,
)
from neorion.keel.kube.kinds import Kind, Manifest
from neorion.keel.kube.labels import matcher
from neorion.keel.kube.objects import ObjectKey, ObjectMeta
from neorion.keel.kube.testing.cluster import MemoryCluster
from neorion.keel.kube.testing.field_ownership import ABSENT, Json, get
from neorion.keel.kube.testing.history import Change
from neorion.keel.kube.testing.patches import merged, patched

T = TypeVar("T")
Test = Callable[[Json], bool]

# Sent like a server's, so that watchers can resume near the present.
BOOKMARK_EVERY: Final = Duration.of(seconds=60)
WATCH_LASTS: Final = Duration.of(minutes=5)


class MemoryApi:
    """The API of a memory cluster for one client. `user` is its name in the cluster's count of writes.

    Each call passes the fault points `kube.<verb>.asked`, before the call takes effect, and `kube.<verb>.done`, after
    it and before the response. A watch passes `kube.watch.told` before each event.
    """

    def __init__(self, cluster: MemoryCluster, clock: Clock, user: str = "tester") -> None:
        self._cluster = cluster
        self._clock = clock
        self._user = user

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        kind.object_path(namespace, name)
        await fault_point("kube.get.asked")
        return _typed(kind, self._cluster.entry(kind, ObjectKey(namespace, name)).body)

    async def list(self, kind: Kind[T], namespace: str = "", select: Selector = ALL) -> ListResult[T]:
        kind.path(namespace)
        await fault_point("kube.list.asked")
        version = str(self._cluster.history.version)
        return ListResult([_typed(kind, body) for body in self._selected(kind, namespace, select)], version)

    def watch(
        self, kind: Kind[T], namespace: str = "", select: Selector = ALL, since: str = ""
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent[T]]]:
        kind.path(namespace)
        return self._watching(kind, namespace, select, since)

    async def create(self, kind: Kind[T], thing: T | Manifest) -> T:
        return await self._write(
            kind,
            "create",
            lambda: self._cluster.create(
                kind, _through_json(kind.manifest(thing)), user=self._user, manager=self._user
            ),
        )

    async def apply(
        self, kind: Kind[T], thing: T | Manifest, manager: str, *, force: bool = False, subresource: str = ""
    ) -> T:
        status = _status(subresource)
        return await self._write(
            kind,
            "apply",
            lambda: self._cluster.apply(
                kind,
                _through_json(kind.manifest(thing)),
                status=status,
                force=force,
                user=self._user,
                manager=manager,
            ),
        )

    async def patch(
        self, kind: Kind[T], name: str, patch: Patch, namespace: str = "", subresource: str = ""
    ) -> T:
        kind.object_path(namespace, name)
        key = ObjectKey(namespace, name)
        status = _status(subresource)

        def change(body: Json) -> Json:
            if isinstance(patch, JsonPatch):
                return patched(body, [dict(operation) for operation in patch.operations])
            return merged(body, patch.body)

        return await self._write(
            kind,
            "patch",
            lambda: self._cluster.patch(
                kind, key, change, status=status, user=self._user, manager=self._user
            ),
        )

    async def replace(self, kind: Kind[T], thing: T | Manifest, subresource: str = "") -> T:
        status = _status(subresource)
        return await self._write(
            kind,
            "replace",
            lambda: self._cluster.update(
                kind,
                _through_json(kind.whole_manifest(thing)),
                status=status,
                user=self._user,
                manager=self._user,
            ),
        )

    async def delete(
        self, kind: Kind[T], name: str, namespace: str = "", how: DeleteOptions = DELETE
    ) -> None:
        kind.object_path(namespace, name)
        key = ObjectKey(namespace, name)
        preconditions = {"uid": how.uid, "resourceVersion": how.version}
        grace = None if how.grace is None else round(how.grace.seconds)
        await self._write(
            kind,
            "delete",
            lambda: self._cluster.delete(kind, key, preconditions, grace=grace, user=self._user),
        )

    async def evict(self, name: str, namespace: str, how: DeleteOptions = DELETE) -> None:
        """Deletes the pod: disruption budgets do not exist here."""
        await self.delete(POD, name, namespace, how)

    async def scale(self, kind: Kind[T], name: str, replicas: int, namespace: str = "") -> None:
        await self.patch(kind, name, MergePatch({"spec": {"replicas": replicas}}), namespace)

    async def token(
        self, account: str, namespace: str, audiences: Sequence[str] = (), life: Duration = TOKEN_LIFE
    ) -> ServiceAccountToken:
        raise _unserved("tokens")

    def logs(
        self, name: str, namespace: str, request: PodLogOptions = ALL_LINES
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        raise _unserved("logs")

    async def _write(self, kind: Kind[T], verb: str, act: Callable[[], Json]) -> T:
        await fault_point(f"kube.{verb}.asked")
        body = act()
        await fault_point(f"kube.{verb}.done")
        return _typed(kind, body)

    def _selected(self, kind: Kind[Any], namespace: str, select: Selector) -> "builtins.list[Json]":
        test = _test(namespace, select)
        entries = sorted(self._cluster.entries(kind).items())
        return [entry.body for _, entry in entries if test(entry.body)]

    @asynccontextmanager
    async def _watching(
        self, kind: Kind[T], namespace: str, select: Selector, since: str
    ) -> AsyncGenerator[AsyncIterator[WatchEvent[T]]]:
        await fault_point("kube.watch.asked")
        if since:
            self._cluster.history.since(int(since))
        events = self._events(kind, namespace, select, since)
        try:
            yield events
        finally:
            await events.aclose()

    async def _events(
        self, kind: Kind[T], namespace: str, select: Selector, since: str
    ) -> AsyncGenerator[WatchEvent[T]]:
        history = self._cluster.history
        test = _test(namespace, select)
        version = int(since or history.version)
        if not since:
            for body in self._selected(kind, namespace, select):
                yield _watch_event(Added, kind, body)
            yield Bookmark(str(version), initial_done=True)
        ends = self._clock.monotonic() + WATCH_LASTS.seconds
        while self._clock.monotonic() < ends:
            for change in history.since(version):
                version = change.version
                if change.resource == kind.resource and (event := _event(kind, change, test)) is not None:
                    await fault_point("kube.watch.told")
                    yield event
            if version < history.version:
                continue
            with anyio.move_on_after(BOOKMARK_EVERY.seconds) as patience:
                await history.news()
            if patience.cancelled_caught:
                await fault_point("kube.watch.told")
                yield Bookmark(str(version))


def _event(kind: Kind[T], change: Change, test: Test) -> WatchEvent[T] | None:
    """The event of a change for a watcher of the selected objects; None if it does not concern them."""
    before = change.before is not None and test(change.before)
    if change.after is not None and test(change.after):
        return _watch_event(Modified if before else Added, kind, change.after)
    if change.before is not None and before:
        last = merged(change.before, {"metadata": {"resourceVersion": str(change.version)}})
        return _watch_event(Deleted, kind, last)
    return None


def _watch_event(
    event: type[Added[T]] | type[Modified[T]] | type[Deleted[T]], kind: Kind[T], body: Json
) -> WatchEvent[T]:
    try:
        return event(_typed(kind, body))
    except msgspec.ValidationError as error:
        meta = msgspec.convert(body["metadata"], ObjectMeta)
        return UndecodableObject(meta, misshapen(kind.name, error), gone=event is Deleted)


def _test(namespace: str, select: Selector) -> Test:
    labels = matcher(select.labels)
    fields = [_field_test(text.strip()) for text in select.fields.split(",") if text.strip()]

    def test(body: Json) -> bool:
        meta = body["metadata"]
        if namespace and meta.get("namespace") != namespace:
            return False
        return labels(meta.get("labels") or {}) and all(field(body) for field in fields)

    return test


def _field_test(text: str) -> Test:
    name, sign, value = text.partition("!=") if "!=" in text else text.replace("==", "=").partition("=")
    path = tuple(name.strip().split("."))
    absent_or = (value.strip(), ABSENT if not value.strip() else value.strip())
    return lambda body: (get(body, path) in absent_or) is (sign == "=")


def _through_json(manifest: Manifest) -> Json:
    """Copies a manifest through JSON, so that nothing is shared with the caller."""
    return msgspec.json.decode(msgspec.json.encode(manifest))


def _typed(kind: Kind[T], body: Json) -> T:
    return msgspec.convert(body, kind.type)


def _status(subresource: str) -> bool:
    if subresource not in ("", "status"):
        raise _unserved(f"the subresource {subresource}")
    return subresource == "status"


def _unserved(what: str) -> Error:
    return refusal(
        Status(code=405, reason="MethodNotAllowed", message=f"The memory double does not serve {what}.")
    )
