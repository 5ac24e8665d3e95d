"""Implements `KubeApi` over HTTP."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TypeVar

import msgspec

from neorion.keel.base import Duration
from neorion.keel.kube.client.cluster_config import Impersonation
from neorion.keel.kube.client.decoding import Page, decode, decode_events, decode_page
from neorion.keel.kube.client.transport import HttpRequest, KubeTransport, Params
from neorion.keel.kube.core import POD, SERVICE_ACCOUNT
from neorion.keel.kube.errors import InvalidObject, ResourceExpired
from neorion.keel.kube.interface import (
    ALL,
    ALL_LINES,
    DELETE,
    TOKEN_LIFE,
    Added,
    Bookmark,
    DeleteOptions,
    JsonPatch,
    ListResult,
    MergePatch,
    Patch,
    PodLogOptions,
    Selector,
    ServiceAccountToken,
    StrategicMergePatch,
    WatchEvent,
)
from neorion.keel.kube.kinds import Kind, Manifest
from neorion.keel.kube.objects import instant

T = TypeVar("T")

# Large enough to be quick, small enough to keep a response at a few megabytes.
PAGE = 500
# The server ends watches after a random time, so that they do not all reconnect at once and load is spread again.
WATCH_S = (300, 600)
# A watch that starts with all existing objects: one request instead of a list and a watch.
_WITH_LIST = (("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"))

_encode = msgspec.json.Encoder().encode


class Client:
    """The API of a cluster, as one user. Made by `connect`."""

    def __init__(self, transport: KubeTransport) -> None:
        self.transport = transport

    @property
    def namespace(self) -> str:
        """The default namespace of the kubeconfig's context or of the pod."""
        return self.transport.cluster.namespace

    def acting_as(self, user: str, groups: Sequence[str] = ()) -> "Client":
        """The same API with the rights of another user, over the same connections."""
        return Client(self.transport.acting_as(Impersonation(user, tuple(groups))))

    def rehearsing(self) -> "Client":
        """The same API with dry-run writes: the server checks and answers them, and stores nothing."""
        return Client(self.transport.rehearsing())

    async def read(self, path: str, params: Params = ()) -> bytes:
        """Reads a path that is not an object: /version, /readyz, /metrics."""
        return await self.transport.call(HttpRequest("GET", path, params, repeatable=True))

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        return decode(kind, await self.read(kind.object_path(namespace, name)))

    async def list(self, kind: Kind[T], namespace: str = "", select: Selector = ALL) -> ListResult[T]:
        chosen = _selecting(select)
        path = kind.path(namespace)
        page = decode_page(kind, await self.read(path, [*chosen, ("limit", str(PAGE))]))
        items = page.items or []
        try:
            while page.metadata.next_page:
                more = [*chosen, ("limit", str(PAGE)), ("continue", page.metadata.next_page)]
                page = decode_page(kind, await self.read(path, more))
                items += page.items or []
        except ResourceExpired:
            # The version of the list expired between two pages. A single response cannot expire.
            page: Page[T] = decode_page(kind, await self.read(path, chosen))
            items = page.items or []
        return ListResult(items, page.metadata.resource_version)

    @asynccontextmanager
    async def watch(
        self, kind: Kind[T], namespace: str = "", select: Selector = ALL, since: str = ""
    ) -> AsyncGenerator[AsyncIterator[WatchEvent[T]]]:
        async with AsyncExitStack() as stack:

            async def begun(where: Params) -> AsyncIterator[WatchEvent[T]]:
                return await stack.enter_async_context(self._changes(kind, namespace, select, where))

            try:
                events = await begun([("resourceVersion", since)] if since else _WITH_LIST)
            except InvalidObject as error:
                # Kubernetes 1.33 supports it only with a feature gate.
                if not any(cause.field == "sendInitialEvents" for cause in error.causes):
                    raise
                listed = await self.list(kind, namespace, select)
                events = _listed_first(listed, await begun([("resourceVersion", listed.version)]))
            yield events

    @asynccontextmanager
    async def _changes(
        self, kind: Kind[T], namespace: str, select: Selector, where: Params
    ) -> AsyncGenerator[AsyncIterator[WatchEvent[T]]]:
        params = [
            *_selecting(select),
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", str(self.transport.rng.randrange(*WATCH_S))),
            *where,
        ]
        async with self.transport.stream(HttpRequest("GET", kind.path(namespace), params)) as pieces:
            yield decode_events(kind, pieces)

    async def create(self, kind: Kind[T], thing: T | Manifest) -> T:
        manifest = kind.manifest(thing)
        request = HttpRequest("POST", kind.path(kind.key(manifest).namespace), body=_encode(manifest))
        return decode(kind, await self.transport.call(request))

    async def apply(
        self, kind: Kind[T], thing: T | Manifest, manager: str, *, force: bool = False, subresource: str = ""
    ) -> T:
        manifest = kind.manifest(thing)
        request = HttpRequest(
            "PATCH",
            kind.object_path(*kind.key(manifest), subresource),
            [("fieldManager", manager), ("force", "true" if force else "false")],
            _encode(manifest),
            # JSON is YAML; the name of the content type is historical.
            "application/apply-patch+yaml",
            repeatable=True,
        )
        return decode(kind, await self.transport.call(request))

    async def patch(
        self, kind: Kind[T], name: str, patch: Patch, namespace: str = "", subresource: str = ""
    ) -> T:
        match patch:
            case MergePatch(body):
                form, content = "application/merge-patch+json", body
            case StrategicMergePatch(body):
                form, content = "application/strategic-merge-patch+json", body
            case JsonPatch(operations):
                form, content = "application/json-patch+json", operations
        path = kind.object_path(namespace, name, subresource)
        request = HttpRequest("PATCH", path, body=_encode(content), content_type=form)
        return decode(kind, await self.transport.call(request))

    async def replace(self, kind: Kind[T], thing: T | Manifest, subresource: str = "") -> T:
        manifest = kind.whole_manifest(thing)
        request = HttpRequest(
            "PUT", kind.object_path(*kind.key(manifest), subresource), body=_encode(manifest)
        )
        return decode(kind, await self.transport.call(request))

    async def delete(
        self, kind: Kind[T], name: str, namespace: str = "", how: DeleteOptions = DELETE
    ) -> None:
        request = HttpRequest(
            "DELETE", kind.object_path(namespace, name), body=_encode(self._delete_options(how))
        )
        await self.transport.call(request)

    async def evict(self, name: str, namespace: str, how: DeleteOptions = DELETE) -> None:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": self._delete_options(how),
        }
        await self.transport.call(
            HttpRequest("POST", POD.path(namespace, name, "eviction"), body=_encode(body))
        )

    async def scale(self, kind: Kind[T], name: str, replicas: int, namespace: str = "") -> None:
        request = HttpRequest(
            "PATCH",
            kind.object_path(namespace, name, "scale"),
            body=_encode({"spec": {"replicas": replicas}}),
            content_type="application/merge-patch+json",
            repeatable=True,
        )
        await self.transport.call(request)

    async def token(
        self,
        account: str,
        namespace: str,
        audiences: Sequence[str] = (),
        life: Duration = TOKEN_LIFE,
    ) -> ServiceAccountToken:
        spec = {"audiences": list(audiences), "expirationSeconds": round(life.seconds)}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        path = SERVICE_ACCOUNT.path(namespace, account, "token")
        made = decode(_TOKEN, await self.transport.call(HttpRequest("POST", path, body=_encode(body))))
        return ServiceAccountToken(made.status.token, instant(made.status.expiration_timestamp))

    def logs(
        self, name: str, namespace: str, request: PodLogOptions = ALL_LINES
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        flags = {"follow": request.follow, "previous": request.previous, "timestamps": request.timestamps}
        params = [(flag, "true") for flag, enabled in flags.items() if enabled]
        params += [("container", request.container)] if request.container else []
        params += [("tailLines", str(request.tail_lines))] if request.tail_lines is not None else []
        # The API takes whole seconds and rejects zero.
        params += [("sinceSeconds", str(max(1, round(request.since.seconds))))] if request.since else []
        return self.transport.stream(HttpRequest("GET", POD.path(namespace, name, "log"), params))

    def _delete_options(self, how: DeleteOptions) -> dict[str, object]:
        options: dict[str, object] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": how.propagation,
        }
        if self.transport.rehearses:
            # For a DELETE with a body, only the options in the body count.
            options["dryRun"] = ["All"]
        if how.grace is not None:
            options["gracePeriodSeconds"] = round(how.grace.seconds)
        expected = {"uid": how.uid, "resourceVersion": how.version}
        conditions = {name: value for name, value in expected.items() if value}
        return options | ({"preconditions": conditions} if conditions else {})


class _TokenStatus(msgspec.Struct, rename="camel"):
    token: str
    expiration_timestamp: str


class _TokenRequest(msgspec.Struct):
    status: _TokenStatus


_TOKEN = Kind(_TokenRequest, "TokenRequest", "token")


async def _listed_first(
    listed: ListResult[T], changes: AsyncIterator[WatchEvent[T]]
) -> AsyncIterator[WatchEvent[T]]:
    for thing in listed.items:
        yield Added(thing)
    yield Bookmark(listed.version, initial_done=True)
    async for change in changes:
        yield change


def _selecting(select: Selector) -> list[tuple[str, str]]:
    chosen = (("labelSelector", select.labels), ("fieldSelector", select.fields))
    return [(name, value) for name, value in chosen if value]
