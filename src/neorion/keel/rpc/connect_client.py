"""The client side of Connect: sends messages with a token and a correlation id, and raises typed errors.

A unary call is one POST with a message as its body. A streamed response consists of envelopes: flag, length, message;
the last envelope is JSON with the outcome of the stream.
"""

import asyncio
import ssl
import struct
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import contextmanager
from typing import Final, NoReturn, TypeVar

from protobuf import Message

from neorion.keel.base import Deadline, Duration, Error, Invalid, Retry, Terminal, Unauthenticated
from neorion.keel.clock import Ids
from neorion.keel.http.client import Request, Response, TooLarge, Transport, read
from neorion.keel.http.dialer import DialError
from neorion.keel.http.message import ProtocolError
from neorion.keel.rpc import wire
from neorion.keel.rpc.call_context import RequestId
from neorion.keel.rpc.pin import PinMismatch
from neorion.keel.telemetry import current as current_correlation

T = TypeVar("T", bound=Message)

# A response larger than this means a broken or foreign server.
_ANSWER_BYTES_MAX: Final = 64 * 2**20
_ENVELOPE: Final = struct.Struct(">BI")
_PLAIN, _END = 0, 2
# The body should end right after the stream. Otherwise the connection is not kept.
_LAST_BYTES_S: Final = 1.0
_UNARY_TYPE: Final = "application/proto"
_STREAM_TYPE: Final = "application/connect+proto"


class ConnectCaller:
    """Sends the calls of generated clients to one server."""

    def __init__(
        self, transport: Transport, address: str, ids: Ids, token: str | None, timeout: Duration
    ) -> None:
        self._transport = transport
        self._address = address
        self._ids = ids
        self._given = token
        self.show(None)
        self._timeout_ms = max(1, round(timeout.ms))

    def __repr__(self) -> str:
        return f"ConnectCaller({self._address!r})"

    def show(self, token: str | None) -> None:
        shown = self._given if token is None else token
        self._authorization = None if shown is None else f"Bearer {shown}"

    async def unary(
        self,
        path: str,
        request: Message,
        answer: type[T],
        headers: Mapping[str, str] | None,
        timeout_ms: int | None,
    ) -> T:
        timeout_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        body = self._body(request)
        sent = Request("POST", path, self._headers(_UNARY_TYPE, headers, timeout_ms), body)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                with self._families():
                    response = await self._transport.send(sent)
                    body = await read(response, _ANSWER_BYTES_MAX)
        except TimeoutError:
            raise self._late() from None
        if response.head.status != 200:
            raise self._refused(response, body)
        self._check_type(response, _UNARY_TYPE)
        return self._message(answer, body)

    async def stream(
        self,
        path: str,
        request: Message,
        answer: type[T],
        headers: Mapping[str, str] | None,
        timeout_ms: int | None,
    ) -> AsyncGenerator[T]:
        message = self._body(request)
        body = _ENVELOPE.pack(_PLAIN, len(message)) + message
        sent = Request("POST", path, self._headers(_STREAM_TYPE, headers, timeout_ms), body)
        deadline = None if timeout_ms is None else asyncio.get_running_loop().time() + timeout_ms / 1000
        response: Response | None = None
        try:
            # Around each wait and not around the loop: the deadline must not fire while our caller works.
            async with asyncio.timeout_at(deadline):
                with self._families():
                    response = await self._transport.send(sent)
                    if response.head.status != 200:
                        raise self._refused(response, await read(response, _ANSWER_BYTES_MAX))
            self._check_type(response, _STREAM_TYPE)
            envelopes = _Envelopes(response)
            while True:
                async with asyncio.timeout_at(deadline):
                    with self._families():
                        flag, message = await envelopes.next()
                if flag == _END:
                    break
                if flag != _PLAIN:
                    raise self._unreadable("it is compressed, which was not requested")
                yield self._message(answer, message)
            if (error := wire.from_connect_end(message)) is not None:
                raise self._named(error)
        except TimeoutError as error:
            # A timeout that our caller throws in at the `yield` arrives here too.
            raise self._late() from error
        finally:
            if response is not None:
                response.release()

    def _headers(
        self, content_type: str, more: Mapping[str, str] | None, timeout_ms: int | None
    ) -> list[tuple[str, str]]:
        headers = [
            ("Content-Type", content_type),
            ("Connect-Protocol-Version", "1"),
            ("User-Agent", "neorion"),
            # Messages are small and links are fast: compression would cost more than it saves.
            ("Accept-Encoding", "identity"),
            ("X-Correlation-Id", current_correlation() or self._ids.new(RequestId)),
        ]
        if timeout_ms is not None:
            headers.append(("Connect-Timeout-Ms", str(timeout_ms)))
        if self._authorization is not None:
            headers.append(("Authorization", self._authorization))
        return headers if more is None else [*headers, *more.items()]

    def _body(self, request: Message) -> bytes:
        try:
            return request.to_binary()
        except OverflowError as cause:
            raise Invalid(
                "rpc.unsendable", f"The request cannot be sent: {cause}.", hint="Give a smaller number."
            ) from None
        except UnicodeEncodeError as cause:
            raise Invalid(
                "rpc.unsendable",
                # Only this character, because the text may be a secret.
                f"The request cannot be sent: it contains {cause.object[cause.start]!r}, which is not a valid character.",
                hint="Write names and values as UTF-8; send other bytes in files or arguments.",
            ) from None

    def _message(self, answer: type[T], body: bytes) -> T:
        try:
            return answer.from_binary(body)
        except ValueError as error:
            self._unreadable(str(error))

    def _check_type(self, response: Response, expected: str) -> None:
        found = response.head.headers.get("content-type", "").partition(";")[0].strip().lower()
        if found != expected:
            self._unreadable(f"its content type is {found[:80]!r} instead of {expected!r}")

    def _refused(self, response: Response, body: bytes) -> Error:
        return self._named(wire.from_connect_body(response.head.status, body))

    def _named(self, error: Error) -> Error:
        error.hint = error.hint or f"The server is {self._address}."
        return error

    def _unreadable(self, why: str) -> NoReturn:
        raise Terminal(
            "rpc.unreadable",
            f"The server's answer cannot be read: {why}.",
            hint=f"Check that {self._address} is the address of this service.",
        )

    @contextmanager
    def _families(self) -> Generator[None]:
        """Translates failures of the connection to error families. A timeout of the caller passes unchanged."""
        try:
            yield
        except (DialError, ssl.SSLCertVerificationError) as error:
            raise self._unreachable(error) from error
        except (OSError, ProtocolError) as error:
            raise self._broken(error) from error
        except TooLarge:
            self._unreadable(f"it is larger than {_ANSWER_BYTES_MAX} bytes")

    def _unreachable(self, cause: Exception) -> Retry | Unauthenticated:
        if _is_about_certificates(cause):
            return self._untrusted(cause)
        return Retry(
            "rpc.unreachable",
            "The server cannot be reached.",
            hint=f"Check that it runs and listens on {self._address}.",
        )

    def _broken(self, cause: Exception) -> Retry | Unauthenticated:
        if _is_about_certificates(cause):
            return self._untrusted(cause)
        hint = f"Check whether {self._address} executed the request before trying again."
        if self._address.startswith("https:"):
            # A server rejects a client certificate only after the handshake, by closing the connection.
            hint += " If every call fails, check the client certificate."
        else:
            # A TLS server closes connections of plain HTTP.
            hint += " If every call fails, use https://, or a token with the server's pin."
        return Retry("rpc.broken", "The connection broke before the answer.", hint=hint)

    def _untrusted(self, cause: Exception) -> Retry | Unauthenticated:
        if isinstance(cause, PinMismatch):
            # Retry, because members of a cluster wait until the right server is back.
            return Retry(
                "rpc.pin",
                f"The server at {self._address} is not the one that the token is for. Nothing was sent to it.",
                hint="Check the address, or get a new token if the server has a new key.",
            )
        return Unauthenticated(
            "rpc.tls",
            "Client and server do not trust each other's certificates.",
            hint=f"Give the client a token of {self._address}, or check its authority and the client certificate.",
        )

    def _late(self) -> Deadline:
        return Deadline(
            "rpc.deadline",
            "The server did not answer in time.",
            hint=f"Check whether {self._address} executed the request before trying again.",
        )


class _Envelopes:
    """The envelopes of one streamed response."""

    def __init__(self, response: Response) -> None:
        self._response = response
        self._buffer = bytearray()

    async def next(self) -> tuple[int, bytes]:
        """Returns the flag and the content of the next envelope. Raises if the body ends before the last one."""
        while len(self._buffer) < _ENVELOPE.size:
            await self._fill()
        flag, size = _ENVELOPE.unpack_from(self._buffer)
        if size > _ANSWER_BYTES_MAX:
            raise TooLarge
        end = _ENVELOPE.size + size
        while len(self._buffer) < end:
            await self._fill()
        content = bytes(self._buffer[_ENVELOPE.size : end])
        del self._buffer[:end]
        if flag == _END:
            await self._finish()
        return flag, content

    async def _fill(self) -> None:
        part = await self._response.next_part()
        if not part:
            raise ConnectionResetError("the answer ended before its last envelope")
        self._buffer += part

    async def _finish(self) -> None:
        """Reads to the end of the body, so that the connection can be reused."""
        try:
            async with asyncio.timeout(_LAST_BYTES_S):
                await self._response.next_part()
        except (OSError, ProtocolError):
            return


def _is_about_certificates(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLError) and "certificate" in str(error).lower():
            return True
        error = error.__cause__
    return False
