"""Connect services and plain HTTP on one port: server, client, errors across the wire, tokens and roles.

Knows how a call travels, never what it says: services live with the systems that own them, each with its `proto` folder
and the `gen` package made from it. Names load when first used: a command line that only calls never loads the server.
"""

from typing import TYPE_CHECKING

from neorion.keel.base import late

if TYPE_CHECKING:
    from neorion.keel.rpc.app import App
    from neorion.keel.rpc.auth import ANYONE, KNOWN, Authenticator, Guests, Principal, Tokens
    from neorion.keel.rpc.call_context import caller, remaining
    from neorion.keel.rpc.client import Channel, connect, http_transport
    from neorion.keel.rpc.http_routes import Handler, Request, Response, Route, json_response
    from neorion.keel.rpc.limits import Limits
    from neorion.keel.rpc.memory import MemoryTransport
    from neorion.keel.rpc.server import Server, serve
    from neorion.keel.rpc.service import Service
    from neorion.keel.rpc.tls import ClientTls, ServerTls

__all__ = [
    "ANYONE",
    "KNOWN",
    "App",
    "Authenticator",
    "Channel",
    "ClientTls",
    "Guests",
    "Handler",
    "Limits",
    "MemoryTransport",
    "Principal",
    "Request",
    "Response",
    "Route",
    "Server",
    "ServerTls",
    "Service",
    "Tokens",
    "caller",
    "connect",
    "http_transport",
    "json_response",
    "remaining",
    "serve",
]

__getattr__ = late(
    __name__,
    {
        "auth": ("ANYONE", "KNOWN", "Authenticator", "Guests", "Principal", "Tokens"),
        "app": ("App",),
        "client": ("Channel", "connect", "http_transport"),
        "call_context": ("caller", "remaining"),
        "limits": ("Limits",),
        "memory": ("MemoryTransport",),
        "http_routes": ("Handler", "Request", "Response", "Route", "json_response"),
        "server": ("Server", "serve"),
        "service": ("Service",),
        "tls": ("ClientTls", "ServerTls"),
    },
)
