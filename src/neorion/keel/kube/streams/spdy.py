"""The part of SPDY/3.1 that a port-forward uses: two streams, their bytes, and the end of each side.

Pure: bytes in, frames out. Header blocks are written and never read, because no answer depends on them.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from neorion.keel.base import Terminal

_VERSION = 3
_CONTROL = 0x80
_SYN_STREAM = 1
_RST_STREAM = 3
_PING = 6
_GOAWAY = 7
_FIN = 0x01
_HEADER = struct.Struct(">IB3s")


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes of a stream; with `last`, no more will come."""

    stream: int
    data: bytes
    last: bool


@dataclass(frozen=True, slots=True)
class Reset:
    """A stream was cut off."""

    stream: int


@dataclass(frozen=True, slots=True)
class Ping:
    """A frame that is sent back unchanged."""

    number: int


@dataclass(frozen=True, slots=True)
class GoAway:
    """The peer is about to close."""


Frame: TypeAlias = Data | Reset | Ping | GoAway


class Writer:
    """Makes frames. One for each connection: header blocks are compressed in one go over its whole life."""

    def __init__(self) -> None:
        self._pack = zlib.compressobj()

    def open(self, stream: int, headers: Mapping[str, str]) -> bytes:
        block = struct.pack(">I", len(headers)) + b"".join(
            struct.pack(">I", len(text)) + text
            for pair in headers.items()
            for text in (part.encode() for part in pair)
        )
        packed = self._pack.compress(block) + self._pack.flush(zlib.Z_SYNC_FLUSH)
        return _control(_SYN_STREAM, struct.pack(">IIH", stream, 0, 0) + packed)


def data_frame(stream: int, data: bytes | memoryview, *, last: bool = False) -> bytes:
    return _HEADER.pack(stream, _FIN if last else 0, len(data).to_bytes(3, "big")) + data


def pong(ping: Ping) -> bytes:
    return _control(_PING, struct.pack(">I", ping.number))


def _control(kind: int, body: bytes) -> bytes:
    return _HEADER.pack(_CONTROL << 24 | _VERSION << 16 | kind, 0, len(body).to_bytes(3, "big")) + body


class SpdyReader:
    """Splits a stream of bytes into frames. A frame has a 24-bit length, which bounds the memory."""

    def __init__(self) -> None:
        # Bytes are added and removed in place, because copying the rest for each chunk would be quadratic in a frame's
        # length.
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        self._rest += data
        while len(self._rest) >= _HEADER.size:
            word, flags, length = _HEADER.unpack_from(self._rest)
            end = _HEADER.size + int.from_bytes(length, "big")
            if len(self._rest) < end:
                return
            body = bytes(memoryview(self._rest)[_HEADER.size : end])
            del self._rest[:end]
            if word >> 31:
                yield from _read_control(word, body)
            else:
                yield Data(word, body, last=bool(flags & _FIN))


def _read_control(word: int, body: bytes) -> Iterator[Frame]:
    version, kind = word >> 16 & 0x7FFF, word & 0xFFFF
    if version != _VERSION:
        raise Terminal(
            "kube.spdy",
            f"The peer of a port-forward speaks version {version} of SPDY.",
            hint="Check what is between this program and the API server.",
        )
    # Replies, settings and windows are passed over: nothing here depends on them.
    if kind == _RST_STREAM and len(body) >= 4:
        yield Reset(int.from_bytes(body[:4], "big") & 0x7FFF_FFFF)
    elif kind == _PING and len(body) >= 4:
        yield Ping(int.from_bytes(body[:4], "big"))
    elif kind == _GOAWAY:
        yield GoAway()
