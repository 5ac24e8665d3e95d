"""Answers of the server, from bytes to typed objects in one step."""

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

# Marks the end of the objects that were there when the watch began.
_INITIAL_DONE = "k8s.io/initial-events-end"
# The server keeps objects below 1.5 MiB, and writes them with managedFields and white space: no honest line is longer.
LINE_MAX = 16 * 2**20


class ListMeta(Struct, frozen=True, rename="camel"):
    """Where a list was taken, and how to get its next page."""

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


# A decoder knows its type inside out and is costly to make: one for each type, for ever.
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


async def decode_events(kind: Kind[T], pieces: AsyncIterator[bytes]) -> AsyncIterator[WatchEvent[T]]:
    decoder = _event(kind.type)
    async for line in _lines(pieces):
        try:
            told = _decoded(decoder, kind, line)
        except Terminal as error:
            yield _unreadable(line, error)
            continue
        match told:
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
        # To Kubernetes a null is an absent field, and some fields are sent as null when empty. Rare, so it may be slow.
        return _converted(decoder.type, kind, body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Terminal(
            "kube.garbled",
            f"What the server sent for {kind.name} is no JSON: {error}.",
            hint="Check what is between this program and the API server.",
        ) from error


def _converted(type_: type[object], kind: Kind[object], body: bytes) -> object:
    try:
        return msgspec.convert(_without_nulls(msgspec.json.decode(body)), type_)
    except msgspec.ValidationError as error:
        raise misshapen(kind.name, error) from error


def _unreadable(line: bytes, error: Terminal) -> UndecodableObject:
    """Whose object it is. A line that does not even tell that ends the watch."""
    try:
        told = msgspec.convert(_without_nulls(msgspec.json.decode(line)), _WatchLine)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise error from None
    return UndecodableObject(told.object.meta, error, gone=told.type == "DELETED")


def _without_nulls(value: object) -> object:
    match value:
        case dict():
            fields = cast("dict[str, object]", value)
            return {name: _without_nulls(field) for name, field in fields.items() if field is not None}
        case list():
            return [_without_nulls(item) for item in cast("list[object]", value)]
        case _:
            return value


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines. A piece holds many of them, or a part of one; what has no newline at the end was cut off."""
    begun: list[bytes] = []
    size = 0
    async for piece in pieces:
        head, newline, rest = piece.partition(b"\n")
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
