"""Connect services and plain HTTP on one port: server, client, errors across the wire, tokens and roles.

Contains the transport of calls, never their content: services belong to systems, each with its `proto` folder
and the `gen` package made from it. Names load when first used: a command line that only calls never loads the server.
"""

from typing import TYPE_CHECKING

from neorion.keel.base import lazy_exports

if TYPE_CHECKING:
    from neorion.keel.rpc.app import AsgiApp
    from neorion.keel.rpc.auth import (
        ANYONE,
        KNOWN,
        AnonymousFallback,
        Authenticator,
        ChainedAuthenticator,
        Principal,
        TokenAuthenticator,
    )
    from neorion.keel.rpc.call_context import caller, remaining
    from neorion.keel.rpc.client import Channel, connect, http_transport
    from neorion.keel.rpc.http_routes import Handler, Route, RouteRequest, RouteResponse, json_response
    from neorion.keel.rpc.limits import RequestLimits
    from neorion.keel.rpc.memory import MemoryTransport
    from neorion.keel.rpc.own_certificate import pin_of, self_signed
    from neorion.keel.rpc.pin import PinnedToken, check_proof
    from neorion.keel.rpc.server import Server, serve
    from neorion.keel.rpc.service import RpcService
    from neorion.keel.rpc.tls import ClientTls, ServerTls

__all__ = [
    "ANYONE",
    "KNOWN",
    "AnonymousFallback",
    "AsgiApp",
    "Authenticator",
    "ChainedAuthenticator",
    "Channel",
    "ClientTls",
    "Handler",
    "MemoryTransport",
    "PinnedToken",
    "Principal",
    "RequestLimits",
    "Route",
    "RouteRequest",
    "RouteResponse",
    "RpcService",
    "Server",
    "ServerTls",
    "TokenAuthenticator",
    "caller",
    "check_proof",
    "connect",
    "http_transport",
    "json_response",
    "pin_of",
    "remaining",
    "self_signed",
    "serve",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "auth": (
            "ANYONE",
            "KNOWN",
            "Authenticator",
            "AnonymousFallback",
            "ChainedAuthenticator",
            "Principal",
            "TokenAuthenticator",
        ),
        "app": ("AsgiApp",),
        "client": ("Channel", "connect", "http_transport"),
        "call_context": ("caller", "remaining"),
        "limits": ("RequestLimits",),
        "memory": ("MemoryTransport",),
        "http_routes": ("Handler", "RouteRequest", "RouteResponse", "Route", "json_response"),
        "pin": ("PinnedToken", "check_proof"),
        "own_certificate": ("pin_of", "self_signed"),
        "server": ("Server", "serve"),
        "service": ("RpcService",),
        "tls": ("ClientTls", "ServerTls"),
    },
)
