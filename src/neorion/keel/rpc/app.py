"""The ASGI application of a process: services and plain routes, behind one ordered set of checks.

A request passes, in this order: correlation id, table of methods, limits, deadline, authentication and
authorization, body, handler. Any failure becomes one typed error in the caller's format.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final

import anyio

from neorion.keel.base import Denied, Duration, Error, Invalid, NotFound, Retry, Unauthenticated
from neorion.keel.clock import Ids
from neorion.keel.rpc import http_errors
from neorion.keel.rpc.admission import LOCAL, Admission, Lane
from neorion.keel.rpc.asgi import Receive, Scope, Send
from neorion.keel.rpc.auth import ANYONE, KNOWN, AnonymousFallback, Authenticator, Principal, is_local_name
from neorion.keel.rpc.call_context import CallContext
from neorion.keel.rpc.http_routes import Route, RouteRequest
from neorion.keel.rpc.idle_connections import KnownPeers
from neorion.keel.rpc.limits import RequestLimits
from neorion.keel.rpc.method import STREAM_TYPES, UNARY_TYPES, Method
from neorion.keel.rpc.pin import PinnedToken
from neorion.keel.telemetry import correlated

if TYPE_CHECKING:
    from neorion.keel.rpc.service import RpcService

_WITHOUT_BODY: Final = frozenset({"GET", "HEAD"})
_DRAIN_AFTER: Final = Duration.of(seconds=1)
# The time for a cancelled handler to clean up before the server continues without it.
_CLEANUP_S: Final = 2.0


# Called with the rejected caller, the path and the error.
OnDenied = Callable[[Principal, str, Denied], Awaitable[None]]


class AsgiApp:
    """An ASGI application of services and routes.

    It needs no socket: `serve` puts it on a port, `MemoryTransport` calls it in memory. It stays drained: a server that
    starts again creates a new one.
    """

    def __init__(
        self,
        services: Iterable["RpcService"] = (),
        routes: Iterable[Route] = (),
        *,
        ids: Ids,
        authenticator: Authenticator | None = None,
        limits: RequestLimits | None = None,
        on_denied: OnDenied | None = None,
    ) -> None:
        """`on_denied` is called for each authenticated caller without the role for a method, before the response."""
        self.limits = limits or RequestLimits()
        self._on_denied = on_denied
        self.authenticator = authenticator
        self._guest = authenticator.guest if isinstance(authenticator, AnonymousFallback) else None
        self._ids = ids
        self._body_span = self.limits.body_time.seconds
        self._methods = _table(services, self.limits)
        self._routes: dict[str, dict[str, Route]] = {}
        for route in routes:
            self._routes.setdefault(route.path, {})[route.method] = route
        self._admission = Admission(self.limits)
        self.known_peers = KnownPeers()
        self._left = anyio.Event()
        self.draining = False
        # Called before each call of a service. It raises where another server is to be asked.
        self.check_leader: Callable[[], None] = _leads

    @property
    def requires_token(self) -> bool:
        """True if every caller needs a token."""
        return self.authenticator is not None and self._guest is None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = CallContext(scope, receive, send, self._ids)
        with correlated(exchange.correlation_id):
            try:
                method = self._methods.get(scope["path"])
                if method is None:
                    await self._serve_route(exchange)
                else:
                    await self._serve_method(exchange, method)
            except asyncio.CancelledError:
                if exchange.verdict is None:
                    raise
                exchange.settle()
                await self._refuse(exchange, exchange.verdict)
            except Exception as error:  # noqa: BLE001 -- the last place that can turn it into a typed response
                failure = exchange.verdict or http_errors.typed(error, exchange.correlation_id)
                await self._refuse(exchange, failure)
            finally:
                exchange.close()

    async def drain(self, grace: Duration) -> None:
        """Rejects new calls, ends streams with a request to reconnect, and waits for calls up to `grace`."""
        self.draining = True
        goodbye = _draining()
        for exchange in self._admission.streams:
            exchange.cut(goodbye)
        await self._quiet(grace.seconds)
        for exchange in (*self._admission.calls, *self._admission.streams):
            exchange.cut(goodbye)
        await self._quiet(_CLEANUP_S)

    async def _quiet(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            while self._admission.calls or self._admission.streams:
                self._left = anyio.Event()
                await self._left.wait()

    async def _serve_method(self, exchange: CallContext, method: Method) -> None:
        if self.draining:
            raise _draining()
        self.check_leader()
        exchange.within(_span(exchange, method), self._body_span)
        _check_form(exchange, method)
        # Callers without permission must not occupy a slot of a lane.
        await self._authorise_call(exchange, method.allow)
        lane = self._admission.enter(exchange, method.allow, stream=method.stream)
        try:
            body = await exchange.read_body(self.limits.body_bytes)
            if method.direct is not None and method.direct.fits(exchange):
                await method.direct.answer(exchange, body)
            else:
                exchange.strip()
                await method.app(exchange.scope, exchange.receive, exchange.send)
        finally:
            self._leave(lane, exchange)

    async def _serve_route(self, exchange: CallContext) -> None:
        """Serves a route. Routes are for probes and people: they have their own lane, and are served while draining."""
        scope = exchange.scope
        path, verb = scope["path"], scope["method"]
        verbs = self._routes.get(path)
        if verbs is None:
            raise NotFound("rpc.no_such_path", f"There is nothing at {path[:100]}.")
        route = verbs.get(verb)
        if route is None:
            raise _wrong_verb(path, verbs)
        exchange.within(self.limits.call_time.seconds, self._body_span)
        await self._authorise(exchange, route.allow)
        lane = self._admission.enter(exchange, route.allow, stream=False)
        try:
            # An unauthenticated caller could announce a body and never send it.
            most = 0 if verb in _WITHOUT_BODY else self.limits.body_bytes
            body = await exchange.read_body(most) if most else exchange.skip_body()
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            query = scope["query_string"].decode("latin-1")
            response = await route.handler(RouteRequest(verb, path, query, headers, body, exchange.principal))
        finally:
            self._leave(lane, exchange)
        extra = [(name.lower().encode(), value.encode()) for name, value in response.headers.items()]
        await exchange.respond(
            response.status, [(b"content-type", response.content_type.encode()), *extra], response.body
        )

    def _leave(self, lane: Lane, exchange: CallContext) -> None:
        lane.leave(exchange)
        if self.draining:
            self._left.set()

    async def _authorise_call(self, exchange: CallContext, allow: frozenset[str]) -> None:
        try:
            await self._authorise(exchange, allow)
        except Unauthenticated:
            # An unauthenticated caller is not reported: it has no name, and could repeat the request without end.
            raise
        except Denied as error:
            if self._on_denied is not None:
                await self._on_denied(exchange.principal, exchange.scope["path"], error)
            raise

    async def _authorise(self, exchange: CallContext, allow: frozenset[str]) -> None:
        if self.authenticator is None:
            exchange.principal = LOCAL
            return
        if ANYONE in allow:
            return
        exchange.principal = await self._principal_of(exchange, self.authenticator)
        if KNOWN not in allow and allow.isdisjoint(exchange.principal.roles):
            raise Denied(
                "rpc.role",
                f"{exchange.principal.name} may not call {exchange.scope['path']}.",
                hint=f"Get a token with one of the roles: {', '.join(sorted(allow))}.",
            )

    async def _principal_of(self, exchange: CallContext, authenticator: Authenticator) -> Principal:
        scheme, _, token = exchange.headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer":
            if self._guest is not None and is_local_name(exchange.headers.get(b"host", b"")):
                return self._guest
            raise Unauthenticated(
                "rpc.no_token",
                "The request carries no bearer token.",
                hint="Give the client a token; over HTTP that is the header Authorization: Bearer TOKEN.",
            )
        # An empty token is never valid, whatever the authenticator contains. A pin before the token is ignored, so that
        # clients may send both.
        shown = PinnedToken.parse(token.decode("latin-1").strip()).token
        principal = await authenticator.authenticate(shown) if shown else None
        if principal is None:
            raise Unauthenticated(
                "rpc.bad_token", "The server does not accept this token.", hint="Get a new token."
            )
        if (peer := exchange.scope.get("client")) is not None:
            self.known_peers.add(str(peer[0]), int(peer[1]))
        return principal

    async def _refuse(self, exchange: CallContext, error: Error) -> None:
        if exchange.started:
            return  # a response has started
        kind = _kind(exchange)
        headers: list[tuple[bytes, bytes]] = []
        if (after := http_errors.retry_after_ms(error)) is not None:
            headers.append((b"retry-after", b"%d" % -(-after // 1000)))
        if isinstance(error, Unauthenticated):
            headers.append((b"www-authenticate", b"Bearer"))
        connect = exchange.scope["path"] in self._methods or b"connect-protocol-version" in exchange.headers
        if kind not in STREAM_TYPES and not connect:
            status, form, body = http_errors.status(error), b"application/json", http_errors.plain_body(error)
        else:
            status, form, body = _connect_answer(error, kind)
        await exchange.respond(status, [*headers, (b"content-type", form)], body)


def _leads() -> None:
    """A server that is the only one."""


def _table(services: Iterable["RpcService"], limits: RequestLimits) -> dict[str, Method]:
    table: dict[str, Method] = {}
    for service in services:
        from neorion.keel.rpc.service import methods  # noqa: PLC0415 -- only processes with services load Connect

        table.update(methods(service, limits))
    return table


def _connect_answer(error: Error, kind: bytes) -> tuple[int, bytes, bytes]:
    from neorion.keel.rpc import wire  # noqa: PLC0415 -- only Connect requests load it

    if kind in STREAM_TYPES:
        # A stream's status is always 200; its last message carries the error.
        return 200, kind, wire.connect_end(error)
    return http_errors.status(error), b"application/json", wire.connect_body(error)


def _span(exchange: CallContext, method: Method) -> float:
    """The time limit of the call in seconds: the caller's timeout, but at most the server's."""
    timeout = exchange.headers.get(b"connect-timeout-ms")
    if timeout is None:
        return method.span
    if not (timeout.isdigit() and len(timeout) <= 10):
        raise Invalid("rpc.timeout", "Connect-Timeout-Ms is a number of at most ten digits.")
    return min(method.span, int(timeout) / 1000)


def _check_form(exchange: CallContext, method: Method) -> None:
    scope = exchange.scope
    verb = scope["method"]
    if verb not in method.verbs:
        raise _wrong_verb(scope["path"], method.verbs)
    kinds = STREAM_TYPES if method.stream else UNARY_TYPES
    if _kind(exchange) not in kinds and (verb == "POST" or b"content-type" in exchange.headers):
        raise Invalid(
            "rpc.content_type",
            f"{scope['path']} does not take this content type.",
            hint=f"Send one of: {', '.join(sorted(kind.decode() for kind in kinds))}.",
        )
    if not (scope["query_string"].isascii() and b"".join(exchange.headers.values()).isascii()):
        raise Invalid("rpc.header", "Headers and query are ASCII.")


def _kind(exchange: CallContext) -> bytes:
    kind = exchange.headers.get(b"content-type", b"")
    return kind if kind in UNARY_TYPES else kind.partition(b";")[0].strip().lower()


def _wrong_verb(path: str, verbs: Iterable[str]) -> Invalid:
    return Invalid("rpc.method", f"{path} takes {' or '.join(sorted(verbs))}.")


def _draining() -> Retry:
    return Retry(
        "rpc.draining",
        "The server is going down.",
        hint="Connect again: another server, or the next one, takes over.",
        after=_DRAIN_AFTER,
    )
