"""Plain HTTP beside the services: a method, an exact path, a handler. For probes, metrics and small pages."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from neorion.keel.rpc.auth import Principal


@dataclass(frozen=True, slots=True)
class Request:
    """A plain HTTP request, read whole."""

    method: str
    path: str
    query_string: str
    headers: Mapping[str, str]
    body: bytes
    principal: Principal

    @property
    def query(self) -> dict[str, str]:
        """The last value of each name."""
        return dict(parse_qsl(self.query_string, keep_blank_values=True))


@dataclass(frozen=True, slots=True)
class Response:
    """What a handler answers."""

    body: bytes = b""
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """Where a handler answers, and who may ask it."""

    method: str
    path: str
    handler: Handler
    allow: frozenset[str]


def json_response(value: object, status: int = 200) -> Response:
    return Response(json.dumps(value, ensure_ascii=False).encode(), status, "application/json")
