"""The fast path for the most common call: unary, binary, not compressed.

Connect's own application handles every form of a call and takes twice as long. It serves all other
forms, and its responses are the same.
"""

import gzip
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from connectrpc.errors import ConnectError
from connectrpc.method import MethodInfo
from connectrpc.request import Headers, RequestContext
from protobuf import Message

from neorion.keel.base import Invalid
from neorion.keel.rpc import connect_errors
from neorion.keel.rpc.call_context import CallContext
from neorion.keel.rpc.http_errors import unwrapped

# A smaller response fits one packet, and compressing it would only take time.
_PACKED_FROM: Final = 1400
# Fast, because the caller waits while the response is compressed.
_GZIP_LEVEL: Final = 1


class _Context(RequestContext[Any, Any]):
    """The context that Connect passes to handlers; headers are built when a handler reads them."""

    def __init__(self, method: MethodInfo[Any, Any], exchange: CallContext) -> None:
        super().__init__(method=method, http_method="POST", request_headers=_NONE)
        self._exchange = exchange

    @property
    def request_headers(self) -> Headers:
        if self._request_headers is _NONE:
            self._exchange.strip()
            self._request_headers = Headers(
                [(name.decode(), value.decode()) for name, value in self._exchange.scope["headers"]]
            )
        return self._request_headers

    def answered(self) -> list[tuple[bytes, bytes]]:
        """The headers that the handler has set."""
        headers = self._response_headers.allitems() if self._response_headers else ()
        trailers = self._response_trailers.allitems() if self._response_trailers else ()
        pairs = [*headers, *((f"trailer-{name}", value) for name, value in trailers)]
        return [(name.encode(), value.encode()) for name, value in pairs]


_NONE: Final = Headers()


@dataclass(frozen=True, slots=True)
class FastPath:
    """One method that calls its handler directly."""

    method: MethodInfo[Any, Any]
    handler: Callable[[Any, RequestContext[Any, Any]], Awaitable[Message]]

    def fits(self, exchange: CallContext) -> bool:
        headers = exchange.headers
        return (
            headers.get(b"content-type") == b"application/proto"
            and headers.get(b"content-encoding", b"identity") == b"identity"
            and headers.get(b"connect-protocol-version", b"1") == b"1"
            and exchange.scope["method"] == "POST"
        )

    async def answer(self, exchange: CallContext, body: bytes) -> None:
        try:
            request = self.method.input.from_binary(body)
        except Exception as error:
            raise Invalid("rpc.invalid_argument", f"The message cannot be read: {error}.") from error
        context = _Context(self.method, exchange)
        exchange.watch()
        try:
            answer = (await self.handler(request, context)).to_binary()
        except Exception as error:
            if isinstance(pairs := unwrapped(error), ConnectError):
                raise connect_errors.from_connect(pairs) from error
            raise
        headers = [(b"content-type", b"application/proto"), *context.answered()]
        if len(answer) >= _PACKED_FROM:
            headers.append((b"vary", b"Accept-Encoding"))
            if b"gzip" in exchange.headers.get(b"accept-encoding", b""):
                headers.append((b"content-encoding", b"gzip"))
                answer = gzip.compress(answer, _GZIP_LEVEL, mtime=0)
        await exchange.respond(200, headers, answer)
