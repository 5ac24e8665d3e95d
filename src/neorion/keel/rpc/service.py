"""Services: the generated application, its implementation, and the roles that may call each method."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from connectrpc.errors import ConnectError
from connectrpc.request import RequestContext
from connectrpc.server import ConnectASGIApplication
from protobuf import DescMethod, DescService
from protobuf.wkt.google.protobuf.descriptor_pb import MethodOptions

from neorion.keel.base import Invalid, did_you_mean
from neorion.keel.rpc import connect_errors
from neorion.keel.rpc.asgi import Application
from neorion.keel.rpc.call_context import current
from neorion.keel.rpc.codec import codecs
from neorion.keel.rpc.fast_path import FastPath
from neorion.keel.rpc.http_errors import typed, unwrapped
from neorion.keel.rpc.limits import RequestLimits
from neorion.keel.rpc.method import Method


class ServiceDescriptor(Protocol):
    """The shape of every generated service class."""

    @classmethod
    def desc(cls) -> DescService: ...


@dataclass(frozen=True, slots=True)
class RpcService:
    """A service to be served: `RpcService(EchoASGIApplication, Echo(), {"Say": {"worker"}, "Look": {ANYONE}})`.

    `allow` maps each method to the roles that may call it. A method without an entry is an error at the start, so that
    none is open by mistake.
    """

    application: Callable[..., ConnectASGIApplication[Any]]
    implementation: ServiceDescriptor
    allow: Mapping[str, frozenset[str] | set[str]]


def methods(service: RpcService, limits: RequestLimits) -> Iterator[tuple[str, Method]]:
    """The rows of one service, by path."""
    desc = service.implementation.desc()
    names = {method.name for method in desc.methods}
    for name in sorted(names - service.allow.keys()):
        raise Invalid(
            "rpc.undeclared",
            f"The service declares no roles for {desc.type_name}/{name}.",
            hint=f'Add "{name}" to the roles of the service; ANYONE allows every caller.',
        )
    for name in sorted(service.allow.keys() - names):
        raise Invalid(
            "rpc.unknown_method", f"{desc.type_name} has no method {name}.", hint=did_you_mean(name, names)
        )
    app = service.application(
        service.implementation,
        interceptors=[_TypedErrors()],
        read_max_bytes=limits.body_bytes,
        codecs=codecs(),
    )
    endpoints = _endpoints(app, service.implementation)
    for method in desc.methods:
        allow = frozenset(service.allow[method.name])
        path = f"/{desc.type_name}/{method.name}"
        found = endpoints[path]
        direct = FastPath(found.method, found.function) if method.method_kind == "unary" else None
        yield path, _row(app, method, allow, limits, direct)


def _endpoints(app: ConnectASGIApplication[Any], implementation: object) -> Mapping[str, Any]:
    """The functions by path. Without interceptors, because the application around them runs ours."""
    return cast("Any", app)._endpoints(implementation)  # noqa: SLF001 -- Connect has no public access to it


def _row(
    app: Application,
    method: DescMethod,
    allow: frozenset[str],
    limits: RequestLimits,
    direct: FastPath | None,
) -> Method:
    if method.method_kind not in ("unary", "server_streaming"):
        raise Invalid(
            "rpc.client_stream",
            f"{method.parent.type_name}/{method.name} streams from the client, which is not served here.",
            hint="Send several messages in several calls.",
        )
    stream = method.method_kind == "server_streaming"
    safe = method.idempotency == MethodOptions.IdempotencyLevel.NO_SIDE_EFFECTS and not stream
    verbs = frozenset({"GET", "POST"} if safe else {"POST"})
    span = limits.stream_time if stream else limits.call_time
    return Method(app, allow, stream, verbs, span.seconds, direct)


class _TypedErrors:
    """Turns any error of a call into one with its detail. Connect calls it last, before it writes the response."""

    async def on_start(self, ctx: RequestContext[Any, Any]) -> None: ...

    async def on_end(self, token: None, ctx: RequestContext[Any, Any], error: Exception | None, /) -> None:
        del token, ctx
        if error is None:
            return
        error = unwrapped(error)
        converted = connect_errors.from_connect(error) if isinstance(error, ConnectError) else None
        raise connect_errors.to_connect(
            current().verdict or converted or typed(error, current().correlation_id)
        )
