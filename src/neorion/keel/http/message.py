"""HTTP/1.1 as bytes: how a request is written, and what an answer says. Pure.

As much of it as API servers, our own servers and the proxies before them speak: no compression, no cookies, no redirects.
"""

from collections.abc import Iterable, Mapping

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from msgspec import Struct

from neorion.keel.base import Invalid

Headers = Iterable[tuple[str, str]]

# What all before the body may weigh: servers of today write less than one kilobyte.
HEAD_MAX = 64 * 1024
# From here on speaks somebody else; of all others below 200, the answer itself follows.
_CHANGEOVER = 101


class ProtocolError(Exception):
    """What came is no HTTP."""


class ResponseHead(Struct, frozen=True):
    """The beginning of an answer. Names of headers are in small letters; of those that come twice, the last counts."""

    status: int
    reason: str
    headers: Mapping[str, str]
    # Whether the connection may be used again once the body is read.
    stays: bool

    @property
    def lasts(self) -> bool:
        """Whether the body goes on until the connection ends."""
        return not self.stays and not {"content-length", "transfer-encoding"} & self.headers.keys()


def write_head(method: str, target: str, headers: Headers) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if not all(line.isprintable() for line in lines):
        raise Invalid(
            "http.header",
            "What goes with a request holds a line break or another control character.",
            hint="Check where the token and the names come from.",
        )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class ResponseParser:
    """The answers of one connection out of its bytes, however those were cut."""

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        # What came behind an answer after which something else than HTTP is spoken.
        self.behind = b""
        self._unasked = False
        self.done = True
        self.expect()

    def expect(self) -> None:
        """A request is on its way: the next answer is its."""
        self.done = False
        self.head: ResponseHead | None = None
        self._size = 0
        self._reason = b""
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self.behind = data[upgrade.args[0] :]
        except HttpParserError as error:
            raise self._garbled(str(error)) from None
        if self._unasked:
            raise self._garbled("it goes on after its end")
        if self.head is None:
            self._size += len(data)
            if self._size > HEAD_MAX:
                raise self._garbled("it has no beginning that ends")
        elif self.head.headers.get("transfer-encoding", "chunked").lower() != "chunked":
            raise self._garbled(f"it is encoded as {self.head.headers['transfer-encoding'][:80]!r}")

    def _garbled(self, why: str) -> ProtocolError:
        # Also of an answer that was whole before it: nothing on this connection can be trusted any more.
        self.done = False
        return ProtocolError(why)

    def take(self) -> bytes:
        """What has come of the body since."""
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken

    def end(self) -> bool:
        """Whether the connection may end here."""
        self.done = self.done or (self.head is not None and self.head.lasts)
        return self.done

    # What the parser calls. An error raised here would come out as one of the parser's.

    def on_message_begin(self) -> None:
        self._unasked = self.done

    def on_status(self, part: bytes) -> None:
        self._reason += part

    def on_header(self, name: bytes, value: bytes) -> None:
        # What stands behind a body says nothing about it.
        if self.head is None:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1").strip()

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        stays = self._parser.should_keep_alive() and status != _CHANGEOVER
        self.head = ResponseHead(status, self._reason.decode("latin-1"), self._headers, stays)

    def on_body(self, piece: bytes) -> None:
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        if self.head is not None and self.head.status < 200 and self.head.status != _CHANGEOVER:
            self.expect()
        else:
            self.done = True
