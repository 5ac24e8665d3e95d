"""HTTP/1.1 as bytes: how a request is written, and what an answer says. Pure.

As much of it as an API server and the proxies before it speak: no compression, no cookies, no redirects.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from neorion.keel.base import Invalid

Headers = Iterable[tuple[str, str]]

# The end of a head, and what a whole one may weigh: servers of today write less than one kilobyte.
HEAD_END = b"\r\n\r\n"
HEAD_MAX = 64 * 1024
# The size of a chunk, or a trailer that nobody reads.
_LINE_MAX = 8 * 1024
# Who believes another of two than the proxy before it sees other answers.
_ONCE = frozenset({"content-length", "transfer-encoding"})
_HEX = frozenset(b"0123456789abcdefABCDEF")


class Garbled(Exception):
    """What came is no HTTP."""


class Head(Struct, frozen=True):
    """The beginning of an answer. Names of headers are in small letters; of those that come twice, the last counts."""

    status: int
    reason: str
    headers: Mapping[str, str]
    # Whether the connection may be used again once the body is read.
    stays: bool


def write_head(method: str, target: str, headers: Headers) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if not all(line.isprintable() for line in lines):
        raise Invalid(
            "kube.header",
            "What goes with a request holds a line break or another control character.",
            hint="Check where the token and the names come from.",
        )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def read_head(block: bytes) -> Head:
    first, *lines = block.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    version, _, rest = first.partition(" ")
    code, _, reason = rest.partition(" ")
    if version not in {"HTTP/1.1", "HTTP/1.0"} or len(code) != 3 or not code.isdecimal():
        raise Garbled(f"it begins with {first[:80]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise Garbled(f"it has {line[:80]!r} among its headers")
        name, value = name.lower(), value.strip()
        if name in _ONCE and headers.get(name, value) != value:
            raise Garbled(f"it has two of {name}")
        headers[name] = value
    asked = headers.get("connection", "").lower()
    stays = "keep-alive" in asked if version == "HTTP/1.0" else "close" not in asked
    return Head(int(code), reason, headers, stays)


class Counted:
    """A body whose length was told."""

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0

    def feed(self, data: bytes) -> bytes:
        if len(data) > self._left:
            raise Garbled("it is longer than it said")
        self._left -= len(data)
        self.done = self._left == 0
        return data

    def end(self) -> bool:
        """Whether the connection may end here."""
        return self.done


class Chunked:
    """A body that comes in chunks, each with its size before it."""

    def __init__(self) -> None:
        self._rest = b""
        self._left = 0
        self._in_chunk = False
        self._last = False
        self.done = False

    def feed(self, data: bytes) -> bytes:
        data = self._rest + data if self._rest else data
        pieces: list[bytes] = []
        at = 0
        while not self.done:
            if self._left:
                piece = data[at : at + self._left]
                at += len(piece)
                self._left -= len(piece)
                pieces.append(piece)
                if self._left:
                    break
            found = data.find(b"\r\n", at, at + _LINE_MAX)
            if found < 0:
                if len(data) - at >= _LINE_MAX:
                    raise Garbled("a chunk has no size")
                break
            self._take(data[at:found])
            at = found + 2
        self._rest = data[at:]
        if self.done and self._rest:
            raise Garbled("it goes on after its end")
        return b"".join(pieces)

    def end(self) -> bool:
        return self.done

    def _take(self, line: bytes) -> None:
        """A line between chunks: the end of one, the size of the next, or after the last a trailer, which is passed over."""
        if self._last:
            self.done = not line
        elif self._in_chunk:
            if line:
                raise Garbled("a chunk is longer than its size")
            self._in_chunk = False
        else:
            size = line.partition(b";")[0].strip()
            if not size or len(size) > 8 or not _HEX.issuperset(size):
                raise Garbled(f"a chunk's size is {size[:20]!r}")
            self._left = int(size, 16)
            self._in_chunk = self._left > 0
            self._last = self._left == 0


class Unbounded:
    """A body that ends where the connection ends."""

    done = False

    def feed(self, data: bytes) -> bytes:
        return data

    def end(self) -> bool:
        return True


Body = Counted | Chunked | Unbounded


def body_of(head: Head) -> Body:
    """How the body after this head is to be read."""
    if head.status in {101, 204, 304}:
        return Counted(0)
    if "transfer-encoding" in head.headers:
        if head.headers["transfer-encoding"].lower() != "chunked":
            raise Garbled(f"it is encoded as {head.headers['transfer-encoding'][:80]!r}")
        return Chunked()
    length = head.headers.get("content-length")
    if length is None:
        return Unbounded()
    if not length.isdecimal() or len(length) > 12:
        raise Garbled(f"its length is {length[:80]!r}")
    return Counted(int(length))
