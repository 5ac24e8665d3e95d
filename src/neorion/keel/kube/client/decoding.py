"""Decodes responses of the server from bytes to typed objects in one step."""

from collections.abc import AsyncIterator
from functools import cache
from typing import Generic, TypeVar, cast

import msgspec
from msgspec import Struct

from neorion.keel.base import Terminal
from neorion.keel.kube.errors import Status, misshapen, refusal
from neorion.keel.kube.interface import Added, Bookmark, Deleted, Modified, UndecodableObject, WatchEvent
from neorion.keel.kube.kinds import Kind
from neorion.keel.kube.objects import KubeObject

T = TypeVar("T")

# Marks the end of the objects that existed when the watch began.
_INITIAL_DONE = "k8s.io/initial-events-end"
# The server limits objects to 1.5 MiB, and adds managedFields and white space: no valid line is longer.
LINE_MAX = 16 * 2**20


class ListMeta(Struct, frozen=True, rename="camel"):
    """The version of a list, and the token of its next page."""

    resource_version: str = ""
    next_page: str = msgspec.field(name="continue", default="")


class Page(Struct, Generic[T], frozen=True):
    """A part of a list."""

    metadata: ListMeta = ListMeta()
    items: list[T] | None = None


class _MarkMeta(Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class _Marked(Struct, frozen=True):
    metadata: _MarkMeta


class _Bookmark(Struct, frozen=True, tag_field="type", tag="BOOKMARK"):
    object: _Marked


class _Failed(Struct, frozen=True, tag_field="type", tag="ERROR"):
    object: Status


class _WatchLine(Struct, frozen=True):
    type: str
    object: KubeObject


# Decoders are costly to make, so each type keeps one for the life of the process.
@cache
def _one(type_: object) -> msgspec.json.Decoder[object]:
    return msgspec.json.Decoder(cast("type[object]", type_))


@cache
def _page(type_: object) -> msgspec.json.Decoder[object]:
    return msgspec.json.Decoder(Page[type_])


@cache
def _event(type_: object) -> msgspec.json.Decoder[object]:
    return msgspec.json.Decoder(Added[type_] | Modified[type_] | Deleted[type_] | _Bookmark | _Failed)


def decode(kind: Kind[T], body: bytes) -> T:
    return cast("T", _decoded(_one(kind.type), kind, body))


def decode_page(kind: Kind[T], body: bytes) -> Page[T]:
    return cast("Page[T]", _decoded(_page(kind.type), kind, body))


async def decode_events(kind: Kind[T], chunks: AsyncIterator[bytes]) -> AsyncIterator[WatchEvent[T]]:
    decoder = _event(kind.type)
    async for line in _lines(chunks):
        try:
            message = _decoded(decoder, kind, line)
        except Terminal as error:
            yield _unreadable(line, error)
            continue
        match message:
            case _Bookmark(marked):
                done = marked.metadata.annotations.get(_INITIAL_DONE) == "true"
                yield Bookmark(marked.metadata.resource_version, done)
            case _Failed(status):
                raise refusal(status)
            case event:
                yield cast("WatchEvent[T]", event)


def _decoded(decoder: msgspec.json.Decoder[object], kind: Kind[object], body: bytes) -> object:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError:
        # Kubernetes treats null as an absent field, and sends null for some empty fields. Rare, so this path may be
        # slow.
        return _converted(decoder.type, kind, body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Terminal(
            "kube.garbled",
            f"The response of the server for {kind.name} is not valid JSON: {error}.",
            hint="Check what is between this program and the API server.",
        ) from error


def _converted(type_: type[object], kind: Kind[object], body: bytes) -> object:
    try:
        return msgspec.convert(_without_nulls(msgspec.json.decode(body)), type_)
    except msgspec.ValidationError as error:
        raise misshapen(kind.name, error) from error


def _unreadable(line: bytes, error: Terminal) -> UndecodableObject:
    """Identifies the object of a line that cannot be decoded.

    Raises `error`, which ends the watch, if the line has no metadata.
    """
    try:
        message = msgspec.convert(_without_nulls(msgspec.json.decode(line)), _WatchLine)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise error from None
    return UndecodableObject(message.object.meta, error, gone=message.type == "DELETED")


def _without_nulls(value: object) -> object:
    match value:
        case dict():
            fields = cast("dict[str, object]", value)
            return {name: _without_nulls(field) for name, field in fields.items() if field is not None}
        case list():
            return [_without_nulls(item) for item in cast("list[object]", value)]
        case _:
            return value


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Splits chunks into whole lines. A last line without a newline was cut off and is dropped."""
    begun: list[bytes] = []
    size = 0
    async for chunk in chunks:
        head, newline, rest = chunk.partition(b"\n")
        begun.append(head)
        size += len(head)
        if size > LINE_MAX:
            raise Terminal(
                "kube.endless_line",
                f"The server sent a line of more than {LINE_MAX} bytes.",
                hint="Check what is between this program and the API server.",
            )
        if not newline:
            continue
        yield b"".join(begun)
        *whole, last = rest.split(b"\n")
        for line in whole:
            yield line
        begun, size = [last], len(last)
