"""Hostile requests to every method of iris and navarch, sent in this process."""

import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from neorion.iris.model.gen import iris_connect, iris_pb
from neorion.keel.clock import SystemIds
from neorion.keel.rpc import ANYONE, AsgiApp, RpcService
from neorion.navarch.model.gen import navarch_connect, navarch_pb
from tests.attacks.mutation import Rng, mutated

SERVICES = {
    iris_pb: [(iris_connect, name) for name in ("JobService", "ClusterService", "WorkerService")],
    navarch_pb: [(navarch_connect, name) for name in ("AgentService", "FleetService")],
}
TOKENS = [
    *(b"{", b"}", b"[", b"]", b'"', b":", b",", b"\\", b"null", b"NaN", b"-", b"1e999", b"\\ud800"),
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"\x00", b"18446744073709551616", b'"@type":', b'{"":'),
    *(b"\x0b", b"\x0c", b"\xff\xff\xff\xff\x0f", b"\x80" * 11, b"\x0a\xff\xff\xff\x7f"),
]
DEPTHS = (1, 10, 63, 64, 65, 100, 1_000, 30_000)


@dataclass(slots=True)
class Method:
    """A path, the message it takes, and whether it answers with a stream."""

    path: str
    message: Any
    stream: bool


def application() -> tuple[AsgiApp, list[Method]]:
    """All methods, whose handlers do nothing: what is tested lies before them."""
    services: list[RpcService] = []
    methods: list[Method] = []
    for messages, named in SERVICES.items():
        for module, name in named:
            stub = type(name, (getattr(module, name),), {})()
            desc = stub.desc()
            allow = {method.name: {ANYONE} for method in desc.methods}
            services.append(RpcService(getattr(module, f"{name}ASGIApplication"), stub, allow))
            methods += [
                Method(
                    f"/{desc.type_name}/{method.name}",
                    getattr(messages, method.input.name),
                    method.method_kind != "unary",
                )
                for method in desc.methods
            ]
    return AsgiApp(services, ids=SystemIds()), methods


@cache
def fields(message: Any) -> list[tuple[str, Any]]:
    return [(one.local_name, one.value) for one in message.desc().fields]


def sample(rng: Rng, message: Any, depth: int = 0) -> Any:
    """A valid message with some of its fields."""
    module = sys.modules[message.__module__]
    values: dict[str, Any] = {}
    for name, value in fields(message):
        if rng.random() < 0.5 and depth < 4:
            make = partial(_scalar_or_message, rng, module, depth=depth)
            if hasattr(value, "element"):
                values[name] = [make(value.element) for _ in range(rng.randrange(0, 3))]
            elif not hasattr(value, "key"):
                values[name] = make(value)
    try:
        return message(**{name: one for name, one in values.items() if one is not None})
    except (TypeError, ValueError):
        return message()


def _scalar_or_message(rng: Rng, module: Any, value: Any, *, depth: int) -> Any:
    kind = getattr(value, "scalar", None) or getattr(value, "message", None) or value
    match getattr(kind, "name", ""):
        case "STRING":
            return rng.choice(("", "x", "/ann/job", "é" * 40, 'a\\"b'))
        case "BYTES":
            return rng.choice((b"", b"\xff" * 30))
        case "BOOL":
            return rng.random() < 0.5
        case "DOUBLE" | "FLOAT":
            return rng.choice((0.0, 1.5, -1e308))
        case name if name.startswith(("INT", "UINT", "SINT", "FIXED")):
            return rng.choice((0, 1, 7, 2**31 - 1))
        case name:
            made = getattr(module, name, None)
            return sample(rng, made, depth + 1) if made is not None and hasattr(made, "from_json") else None


def deep(form: str) -> bytes:
    """The shortest message known to overflow a parser's stack, in JSON and as groups."""
    return {"json": b"[" * 20_000, "proto": b"\x0b" * 20_000}[form]


def nested(rng: Rng) -> bytes:
    """One opening again and again, in JSON, in groups and in fields that hold messages; now and then closed as well."""
    opening, closing = rng.choice(
        (
            (b"[", b"]"),
            (b'{"a":', b"}"),
            (b'[{"":', b"}]"),
            (b"\x0b", b"\x0c"),
            (b"\x0a\x7f", b""),
            (b'"[', b'"'),
        )
    )
    depth = rng.choice(DEPTHS)
    return opening * depth + (closing * depth if rng.random() < 0.5 else b"")


def requests(rng: Rng, methods: list[Method]) -> Iterator[tuple[Method, str, bytes]]:
    while True:
        method = rng.choice(methods)
        form = rng.choice(("json", "proto"))
        message = sample(rng, method.message)
        body = message.to_json().encode() if form == "json" else message.to_binary()
        # Changes of a few bytes make nothing deep.
        yield method, form, mutated(rng, body, [*TOKENS, *[nested(rng)] * 5])


async def send(app: AsgiApp, method: Method, form: str, body: bytes) -> str:
    """How it was answered: `read` if it reached its handler, `refused`, or `failed` for an error without a type."""
    if method.stream:
        body = struct.pack(">BI", 0, len(body)) + body
    kind = f"application/connect+{form}" if method.stream else f"application/{form}"
    scope = {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "http_version": "1.1",
        "path": method.path,
        "raw_path": method.path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(body))],
    }
    unread = [body]
    answer = b""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": unread.pop()} if unread else {"type": "http.disconnect"}

    async def keep(message: Any) -> None:
        nonlocal answer
        answer += message.get("body", b"")

    await app(scope, receive, keep)
    # The handlers are the generated ones, which answer all alike.
    return "read" if b"Not implemented" in answer else "failed" if b"rpc.internal" in answer else "refused"
