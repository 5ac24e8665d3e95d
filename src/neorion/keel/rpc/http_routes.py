"""Plain HTTP routes beside the services: method, exact path, handler. For probes, metrics and small pages."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from neorion.keel.rpc.auth import Principal


@dataclass(frozen=True, slots=True)
class RouteRequest:
    """A plain HTTP request with its whole body."""

    method: str
    path: str
    query_string: str
    headers: Mapping[str, str]
    body: bytes
    principal: Principal

    @property
    def query(self) -> dict[str, str]:
        """The query parameters; of repeated names, the last value."""
        return dict(parse_qsl(self.query_string, keep_blank_values=True))


@dataclass(frozen=True, slots=True)
class RouteResponse:
    """The response of a handler."""

    body: bytes = b""
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Handler = Callable[[RouteRequest], Awaitable[RouteResponse]]


@dataclass(frozen=True, slots=True)
class Route:
    """The path of a handler, and the roles that may call it."""

    method: str
    path: str
    handler: Handler
    allow: frozenset[str]


def json_response(value: object, status: int = 200) -> RouteResponse:
    return RouteResponse(json.dumps(value, ensure_ascii=False).encode(), status, "application/json")
