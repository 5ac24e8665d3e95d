"""What goes with every call of a client: identity and correlation on the way out, families of errors on the way back."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final, NoReturn, TypeVar, cast

import pyqwest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from connectrpc.request import RequestContext

from neorion.keel.base import Deadline, Duration, Invalid, Retry, Unauthenticated
from neorion.keel.clock import Ids
from neorion.keel.rpc import wire
from neorion.keel.rpc.exchange import RequestId
from neorion.keel.telemetry import current as current_correlation

REQ = TypeVar("REQ")
RES = TypeVar("RES")
Context = RequestContext[Any, Any]

_BROKEN: Final = (pyqwest.ReadError, pyqwest.WriteError, pyqwest.RemoteProtocolError)


class Caller:
    """The one interceptor of our clients."""

    def __init__(self, address: str, ids: Ids, token: str | None, timeout: Duration) -> None:
        self._address = address
        self._ids = ids
        self._given = token
        self.show(None)
        self._timeout_ms = str(max(1, round(timeout.ms)))

    def __repr__(self) -> str:
        return f"Caller({self._address!r})"

    def show(self, token: str | None) -> None:
        shown = self._given if token is None else token
        self._authorization = None if shown is None else f"Bearer {shown}"

    async def intercept_unary(
        self, call_next: Callable[[REQ, Context], Awaitable[RES]], request: REQ, ctx: Context, /
    ) -> RES:
        ctx.request_headers.setdefault("connect-timeout-ms", self._timeout_ms)
        deadline, ctx = self._prepare(ctx)
        try:
            async with asyncio.timeout_at(deadline):
                try:
                    return await call_next(request, ctx)
                except ConnectError as error:
                    self._raise(error)
        except TimeoutError:
            raise self._late() from None

    async def intercept_server_stream(
        self, call_next: Callable[[REQ, Context], AsyncIterator[RES]], request: REQ, ctx: Context, /
    ) -> AsyncIterator[RES]:
        deadline, ctx = self._prepare(ctx)
        # Connect's streams are generators, though its types promise less.
        async with aclosing(cast("AsyncGenerator[RES]", call_next(request, ctx))) as stream:
            while True:
                try:
                    # Around each wait and not around the loop: the deadline must not strike while our caller works.
                    async with asyncio.timeout_at(deadline):
                        try:
                            message = await anext(stream)
                        except ConnectError as error:
                            self._raise(error)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    raise self._late() from None
                yield message

    def _prepare(self, ctx: Context) -> tuple[float | None, Context]:
        """The call's headers, its deadline on the loop's clock, and a context that leaves the deadline to us.

        Connect would measure it on the machine's clock, which a simulated run does not have.
        """
        headers = ctx.request_headers
        headers["x-correlation-id"] = current_correlation() or self._ids.new(RequestId)
        if self._authorization is not None:
            headers["authorization"] = self._authorization
        timeout_ms = headers.get("connect-timeout-ms")
        deadline = None
        if timeout_ms is not None:
            deadline = asyncio.get_running_loop().time() + int(timeout_ms) / 1000
        return deadline, RequestContext(
            method=ctx.method,
            http_method=ctx.http_method,
            request_headers=headers,
            server_address=ctx.server_address,
        )

    def _raise(self, error: ConnectError) -> NoReturn:
        cause = error.__cause__
        if isinstance(cause, asyncio.CancelledError):
            # Connect reports a cancelled task as an error, which would keep the task alive.
            raise cause from None
        if isinstance(cause, ConnectionError):
            raise self._unreachable(cause) from error
        if isinstance(cause, _BROKEN):
            raise self._broken() from error
        if isinstance(cause, OverflowError):
            raise Invalid(
                "rpc.unsendable", f"The request cannot be sent: {cause}.", hint="Give a smaller number."
            ) from None
        if isinstance(cause, UnicodeEncodeError):
            raise Invalid(
                "rpc.unsendable",
                # No more of it: it may be the value of a secret.
                f"The request cannot be sent: it holds {cause.object[cause.start]!r}, which is no character.",
                hint="Write names and values as UTF-8; send other bytes in files or arguments.",
            ) from None
        if cause is not None and error.code is Code.UNAVAILABLE:
            # Connect says this of whatever else went wrong on this side.
            raise cause from None
        found = wire.from_connect(error)
        found.hint = found.hint or f"The server is {self._address}."
        # Connect's own says the same in other words.
        raise found from None

    def _unreachable(self, cause: BaseException) -> Retry | Unauthenticated:
        if "certificate" in str(cause).lower():
            return Unauthenticated(
                "rpc.tls",
                "The two sides do not trust each other's certificates.",
                hint=f"Check the authority and the client certificate used for {self._address}.",
            )
        return Retry(
            "rpc.unreachable",
            "The server cannot be reached.",
            hint=f"Check that it runs and listens on {self._address}.",
        )

    def _broken(self) -> Retry:
        hint = f"Whether {self._address} did the work is unknown: look before trying again."
        if self._address.startswith("https:"):
            # A server refuses a client's certificate only after the handshake, by hanging up.
            hint += " If it never works, check the client certificate."
        return Retry("rpc.broken", "The connection broke before the answer.", hint=hint)

    def _late(self) -> Deadline:
        return Deadline(
            "rpc.deadline",
            "The server did not answer in time.",
            hint=f"Whether {self._address} did the work is unknown: look before trying again.",
        )
