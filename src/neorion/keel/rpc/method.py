"""One row of the table of methods, and the forms in which calls come."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from neorion.keel.rpc.asgi import Application

if TYPE_CHECKING:
    # Connect, which a server of plain routes does without.
    from neorion.keel.rpc.fast_path import FastPath


@dataclass(frozen=True, slots=True)
class Method:
    """One row of the table of methods."""

    app: Application
    allow: frozenset[str]
    stream: bool
    verbs: frozenset[str]
    # The most seconds the server gives it.
    span: float
    # None for streams.
    direct: "FastPath | None"


# The message kinds of Connect. The gRPC wire needs trailers, which the HTTP server does not have.
UNARY_TYPES: Final = frozenset({b"application/proto", b"application/json"})
STREAM_TYPES: Final = frozenset({b"application/connect+proto", b"application/connect+json"})
