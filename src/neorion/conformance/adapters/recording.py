"""The cluster's API with every request, answer and event recorded as evidence."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar, cast

import msgspec

from neorion.conformance.decide.evidence import digest_of
from neorion.conformance.ports import Recorder
from neorion.keel.base import Duration, Error, Retry, Terminal
from neorion.keel.kube import (
    ALL,
    Bookmark,
    DeleteOptions,
    Kind,
    MergePatch,
    PodLogOptions,
    Selector,
    UndecodableObject,
)
from neorion.keel.kube.client import Client
from neorion.keel.kube.client.transport import HttpRequest

T = TypeVar("T")
Json = dict[str, Any]

# Of an answer that is read as text. Larger ones are cut, so that a hostile answer cannot fill the memory.
ANSWER_BYTES_MAX: Final = 8 * 1024 * 1024
# The API server itself was away, or what lies between. Other refusals come from what it serves.
_AWAY: Final = frozenset({"kube.unreachable", "kube.lost", "kube.slow"})
# Of a list, so many objects are kept whole; of the others the names.
_KEPT_MAX: Final = 20
_NOW: Final = Duration(0)


class RecordingApi:
    """The requests that checks may send to a cluster. Objects are plain JSON, because checks drive kinds of many makers."""

    def __init__(self, client: Client, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder
        # What shows that the API server could not be observed for a while, in order.
        self.disturbances: list[str] = []

    async def read(self, path: str) -> Json:
        """The JSON at a path of the server that is not an object."""
        answer = await self._recorded("read", path, None, lambda: self._client.read(path))
        try:
            return msgspec.json.decode(answer, type=Json)
        except (msgspec.DecodeError, msgspec.ValidationError):
            raise Terminal("conformance.no_json", f"The answer at {path[:120]} is not JSON.") from None

    async def read_text(self, path: str) -> str:
        """A text that something in the cluster serves, through the API server's proxy."""

        async def stream() -> str:
            content = bytearray()
            async with self._client.transport.stream(HttpRequest("GET", path)) as pieces:
                async for piece in pieces:
                    content += piece
                    if len(content) > ANSWER_BYTES_MAX:
                        raise Terminal("conformance.too_large", f"The answer at {path[:120]} is too large.")
            return content.decode(errors="replace")

        return await self._recorded("read", path, None, stream)

    async def get(self, kind: Kind[Any], name: str, namespace: str = "") -> Json:
        return await self._recorded(
            "get", kind.path(namespace, name), None, lambda: self._client.get(kind.raw, name, namespace)
        )

    async def list(self, kind: Kind[Any], namespace: str = "", select: Selector = ALL) -> list[Json]:
        async def listed() -> list[Json]:
            return list((await self._client.list(kind.raw, namespace, select)).items)

        return await self._recorded("list", _selected(kind.path(namespace), select), None, listed)

    async def create(self, kind: Kind[Any], manifest: Mapping[str, object]) -> Json:
        key = kind.key(manifest)
        return await self._recorded(
            "create", kind.path(key.namespace), manifest, lambda: self._client.create(kind.raw, manifest)
        )

    async def try_create(self, kind: Kind[Any], manifest: Mapping[str, object]) -> Json:
        """Asks the server to check a creation without carrying it out."""
        key = kind.key(manifest)
        rehearsing = self._client.rehearsing()
        return await self._recorded(
            "dry-run", kind.path(key.namespace), manifest, lambda: rehearsing.create(kind.raw, manifest)
        )

    async def merge(
        self,
        kind: Kind[Any],
        name: str,
        body: Mapping[str, object],
        namespace: str = "",
        subresource: str = "",
    ) -> Json:
        return await self._recorded(
            "patch",
            kind.path(namespace, name, subresource),
            body,
            lambda: self._client.patch(kind.raw, name, MergePatch(body), namespace, subresource),
        )

    async def delete(self, kind: Kind[Any], name: str, namespace: str = "", *, at_once: bool = False) -> None:
        how = DeleteOptions(grace=_NOW if at_once else None)
        await self._recorded(
            "delete",
            kind.path(namespace, name),
            None,
            lambda: self._client.delete(kind.raw, name, namespace, how),
        )

    async def logs(self, pod: str, namespace: str, container: str) -> str:
        async def read() -> str:
            content = bytearray()
            async with self._client.logs(pod, namespace, PodLogOptions(container=container)) as pieces:
                async for piece in pieces:
                    content += piece
                    if len(content) > ANSWER_BYTES_MAX:
                        break
            return content.decode(errors="replace")

        return await self._recorded("logs", f"{namespace}/{pod}/{container}", None, read)

    @asynccontextmanager
    async def watch(
        self, kind: Kind[Any], namespace: str, select: Selector
    ) -> AsyncGenerator[AsyncIterator[tuple[str, Json]]]:
        """The events as (type, object); "SYNCED" once everything that was there has been given."""
        async with self._noticing(), self._client.watch(kind.raw, namespace, select) as events:

            async def recorded() -> AsyncIterator[tuple[str, Json]]:
                async for event in events:
                    if isinstance(event, Bookmark):
                        if event.initial_done:
                            yield "SYNCED", {}
                        continue
                    if isinstance(event, UndecodableObject):
                        raise event.error
                    name = type(event).__name__.upper()
                    self._recorder.record(
                        "event", {"type": name, "resource": kind.resource, "object": _slim(event.object)}
                    )
                    yield name, event.object

            yield recorded()

    @asynccontextmanager
    async def _noticing(self) -> AsyncGenerator[None]:
        """Remembers a watch that does not begin or that breaks, whichever way the server failed."""
        try:
            yield
        except Retry as error:
            self._disturbed(error)
            raise

    def _disturbed(self, error: Error) -> None:
        self.disturbances.append(error.sentence)
        self._recorder.record("disturbance", {"code": error.code, "message": error.sentence})

    def note(self, kind: str, fields: Mapping[str, object]) -> None:
        self._recorder.record(kind, fields)

    async def _recorded(
        self, verb: str, path: str, body: Mapping[str, object] | None, call: Callable[[], Awaitable[T]]
    ) -> T:
        about: Json = {"verb": verb, "path": path}
        if body is not None:
            about |= {"body": body, "body_sha256": digest_of(msgspec.json.encode(body))}
        try:
            answer = await call()
        except Error as error:
            self._recorder.record(
                "request",
                {**about, "status": error.http_status, "code": error.code, "message": error.sentence},
            )
            if error.code in _AWAY:
                self._disturbed(error)
            raise
        self._recorder.record("request", {**about, "status": 200, "answer": _shown(answer)})
        return answer


def _selected(path: str, select: Selector) -> str:
    words = "&".join(word for word in (select.labels, select.fields) if word)
    return f"{path}?{words}" if words else path


def _shown(answer: object) -> object:
    if isinstance(answer, list):
        items = cast("list[Json]", answer)
        kept = [_slim(each) for each in items[:_KEPT_MAX]]
        return {"count": len(items), "items": kept, "more": [_name(each) for each in items[_KEPT_MAX:]]}
    if isinstance(answer, bytes):
        return {"bytes": len(answer), "sha256": digest_of(answer)}
    return _slim(cast("Json", answer)) if isinstance(answer, dict) else answer


def _name(item: Json) -> str:
    return str(item.get("metadata", {}).get("name", ""))


def _slim(item: Json) -> Json:
    """Without managed fields: they are large and say nothing about behaviour."""
    meta = item.get("metadata")
    if not isinstance(meta, dict) or "managedFields" not in meta:
        return item
    kept = {key: value for key, value in cast("Json", meta).items() if key != "managedFields"}
    return {**item, "metadata": kept}
