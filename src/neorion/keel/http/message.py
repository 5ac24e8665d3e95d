"""HTTP/1.1 messages as bytes: writes requests and parses responses. Pure.

Supports what API servers, our own servers and proxies use: no compression, no cookies, no redirects.
"""

from collections.abc import Iterable, Mapping

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from msgspec import Struct

from neorion.keel.base import Invalid

Headers = Iterable[tuple[str, str]]

# The limit of the head of a message; current servers send less than one kilobyte.
HEAD_MAX = 64 * 1024
# After 101 the connection carries another protocol. After all others below 200, the final response follows.
_SWITCHING_PROTOCOLS = 101


class ProtocolError(Exception):
    """The received bytes are not valid HTTP."""


class ResponseHead(Struct, frozen=True):
    """The head of a response. Header names are in lower case; of repeated headers, the last one counts."""

    status: int
    reason: str
    headers: Mapping[str, str]
    # True if the connection can be reused once the body is read.
    stays: bool

    @property
    def lasts(self) -> bool:
        """True if the body continues until the connection ends."""
        return not self.stays and not {"content-length", "transfer-encoding"} & self.headers.keys()


def write_head(method: str, target: str, headers: Headers) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if not all(line.isprintable() for line in lines):
        raise Invalid(
            "http.header",
            "A request header contains a line break or another control character.",
            hint="Check where the token and the names come from.",
        )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class ResponseParser:
    """Parses the responses of one connection from its bytes, however they are split."""

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        # Bytes after a response that switches to another protocol.
        self.behind = b""
        self._unexpected = False
        self.done = True
        self.expect()

    def expect(self) -> None:
        """Prepares for the response to a request that was just sent."""
        self.done = False
        self.head: ResponseHead | None = None
        self._size = 0
        self._reason = b""
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self.behind = data[upgrade.args[0] :]
        except HttpParserError as error:
            raise self._garbled(str(error)) from None
        if self._unexpected:
            raise self._garbled("it goes on after its end")
        if self.head is None:
            self._size += len(data)
            if self._size > HEAD_MAX:
                raise self._garbled("it has no beginning that ends")
        elif self.head.headers.get("transfer-encoding", "chunked").lower() != "chunked":
            raise self._garbled(f"it is encoded as {self.head.headers['transfer-encoding'][:80]!r}")

    def _garbled(self, why: str) -> ProtocolError:
        # Also for a response that was complete before: the rest of this connection cannot be parsed.
        self.done = False
        return ProtocolError(why)

    def take(self) -> bytes:
        """Returns the body received since the last call."""
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken

    def end(self) -> bool:
        """Marks the end of the connection; true if the response is complete."""
        self.done = self.done or (self.head is not None and self.head.lasts)
        return self.done

    # Callbacks of the parser. It would wrap an error raised in them.

    def on_message_begin(self) -> None:
        self._unexpected = self.done

    def on_status(self, part: bytes) -> None:
        self._reason += part

    def on_header(self, name: bytes, value: bytes) -> None:
        # Headers after the body (trailers) are ignored.
        if self.head is None:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1").strip()

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        stays = self._parser.should_keep_alive() and status != _SWITCHING_PROTOCOLS
        self.head = ResponseHead(status, self._reason.decode("latin-1"), self._headers, stays)

    def on_body(self, part: bytes) -> None:
        self._parts.append(part)

    def on_message_complete(self) -> None:
        if self.head is not None and self.head.status < 200 and self.head.status != _SWITCHING_PROTOCOLS:
            self.expect()
        else:
            self.done = True
