"""The client's half of WebSockets (RFC 6455), on a link that a server has agreed to change over."""

import struct
from base64 import b64encode
from hashlib import sha1

from neorion.keel.clock import Rng
from neorion.keel.kube.client.http import Garbled, Head, Headers
from neorion.keel.kube.client.link import Link

# The kubelet's pieces have 32 KiB; nothing on its streams comes near this.
MESSAGE_MAX = 4 * 2**20
_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUED, _BINARY, _CLOSE, _PING, _PONG = 0, 2, 8, 9, 10
_FINAL, _RESERVED, _KIND, _MASKED = 0x80, 0x70, 0x0F, 0x80


def new_key(rng: Rng) -> str:
    """Sixteen bytes that the server has to prove it has read: no secret."""
    return b64encode(rng.randrange(0, 2**128).to_bytes(16)).decode()


def greeting(key: str, protocol: str) -> Headers:
    return [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", key),
        ("Sec-WebSocket-Protocol", protocol),
    ]


def accepted(head: Head, key: str, protocol: str) -> bool:
    """Whether the server has read the greeting and speaks the protocol."""
    proof = b64encode(sha1(key.encode() + _MAGIC, usedforsecurity=False).digest()).decode()
    told = head.headers.get
    return (
        head.status == 101
        and told("sec-websocket-accept") == proof
        and told("sec-websocket-protocol") == protocol
    )


def frame(kind: int, data: bytes, mask: bytes) -> bytes:
    """One whole message. What a client sends is masked, so that no proxy can take it for a request."""
    size = len(data)
    if size < 126:
        head = struct.pack("!BB", _FINAL | kind, _MASKED | size)
    elif size < 2**16:
        head = struct.pack("!BBH", _FINAL | kind, _MASKED | 126, size)
    else:
        head = struct.pack("!BBQ", _FINAL | kind, _MASKED | 127, size)
    # As one large number: there is no quicker way in Python.
    key = (mask * (size // 4 + 1))[:size]
    masked = (int.from_bytes(data) ^ int.from_bytes(key)).to_bytes(size)
    return head + mask + masked


class Frames:
    """Frames out of bytes, however those were cut."""

    def __init__(self) -> None:
        self._data = b""
        self._at = 0

    def feed(self, data: bytes) -> None:
        self._data = self._data[self._at :] + data
        self._at = 0

    def next(self) -> tuple[int, bool, bytes] | None:
        """The kind of the next frame, whether it ends its message, and its data; none before it is whole."""
        data, start = self._data, self._at + 2
        if len(data) < start:
            return None
        first, size = data[start - 2], data[start - 1]
        if first & _RESERVED or size & _MASKED:
            raise Garbled("a frame is marked as no server may mark it")
        if size >= 126:
            begin, start = start, start + (2 if size == 126 else 8)
            if len(data) < start:
                return None
            size = int.from_bytes(data[begin:start])
        if size > MESSAGE_MAX:
            raise Garbled(f"a frame has {size} bytes")
        end = start + size
        if len(data) < end:
            return None
        self._at = end
        return first & _KIND, bool(first & _FINAL), data[start:end]


class WebSocket:
    """Messages of bytes, both ways. One task receives; any may send."""

    def __init__(self, link: Link, rng: Rng) -> None:
        self._link = link
        self._rng = rng
        self._frames = Frames()
        self._begun: list[bytes] = []
        self._size = 0

    async def send(self, message: bytes) -> None:
        self._write(_BINARY, message)
        await self._link.drain()

    async def receive(self) -> bytes | None:
        """The next message, or nothing when the peer has closed, is gone, or speaks of something else."""
        while True:
            while (found := self._frames.next()) is not None:
                kind, final, data = found
                if kind == _PING:
                    self._write(_PONG, data)
                elif kind in {_BINARY, _CONTINUED}:
                    if (message := self._joined(data, final=final)) is not None:
                        return message
                elif kind != _PONG:
                    return None
            data = await self._link.some()
            if not data:
                return None
            self._frames.feed(data)

    def close(self) -> None:
        """Says goodbye to who is still there."""
        if self._link.stands:
            self._write(_CLOSE, struct.pack("!H", 1000))

    def _joined(self, data: bytes, *, final: bool) -> bytes | None:
        self._begun.append(data)
        self._size += len(data)
        if self._size > MESSAGE_MAX:
            raise Garbled(f"a message has more than {MESSAGE_MAX} bytes")
        if not final:
            return None
        message = b"".join(self._begun)
        self._begun, self._size = [], 0
        return message

    def _write(self, kind: int, data: bytes) -> None:
        self._link.write(frame(kind, data, self._rng.randrange(0, 2**32).to_bytes(4)))
