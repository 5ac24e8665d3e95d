"""Sends hostile requests to every method of iris and navarch, in this process, and prints what came of it as JSON.

A program of its own, because a parser that overflows its stack takes its process with it: `rpc_fuzz.py SEED COUNT`.
"""

import asyncio
import json
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from neorion.iris.model.gen import iris_connect, iris_pb
from neorion.keel.clock import SystemIds, seeded_rng
from neorion.keel.rpc import ANYONE, AsgiApp, RpcService
from neorion.navarch.model.gen import navarch_connect, navarch_pb

Rng = Any
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


@dataclass(slots=True)
class Report:
    """How many requests were sent, the most CPU time that one took, and how the server answered."""

    inputs: int = 0
    slowest_s: float = 0.0
    answers: Counter[str] = field(default_factory=Counter[str])


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


def mutated(rng: Rng, body: bytes) -> bytes:
    """The same bytes after one to four accidents."""
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(0, len(body) + 1)
        to = min(len(body), at + rng.randrange(0, 16))
        match rng.randrange(0, 6):
            case 0:
                body = body[:at]
            case 1:
                body = body[:at] + bytes([rng.randrange(0, 256)]) + body[at + 1 :]
            case 2:
                body = body[:at] + rng.choice(TOKENS) + body[to:]
            case 3:
                body = body[:at] + body[at:to] * rng.randrange(2, 40) + body[to:]
            case 4:
                body = body[:at] + body[to:]
            case _:
                body = body[:at] + nested(rng) + body[to:]
    return body


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
        yield method, form, mutated(rng, body)


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


async def fuzz(seed: int, count: int, tell: Callable[[Report], None]) -> None:
    app, methods = application()
    found = requests(seeded_rng(seed), methods)
    report = Report()
    for _ in range(count):
        method, form, body = next(found)
        began = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)
        answered = await send(app, method, form, body)
        report.slowest_s = max(report.slowest_s, time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) - began)
        report.inputs += 1
        report.answers[answered] += 1
    tell(report)


def tell(report: Report) -> None:
    found = {"inputs": report.inputs, "slowest_s": report.slowest_s, "answers": report.answers}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    asyncio.run(fuzz(int(sys.argv[1]), int(sys.argv[2]), tell))
