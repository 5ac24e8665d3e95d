"""The port as foreign programs see it: curl, probes, slow peers, and whoever sends garbage."""

import json
import re
import socket
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream
from hypothesis import given, settings
from hypothesis import strategies as st

from neorion.keel.base import Duration
from neorion.keel.rpc import RequestLimits
from tests.keel.rpc.gen.echo_pb import Ping
from tests.keel.rpc.world import TOKEN, World, over_socket

pytestmark = pytest.mark.anyio
SAY = "/neorion.tests.rpc.v1.Echo/Say"
WAIT = "/neorion.tests.rpc.v1.Echo/Wait"
LOOK = "/neorion.tests.rpc.v1.Echo/Look"
WATCH = "/neorion.tests.rpc.v1.Echo/Watch"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response as it came over the socket."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(verb: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"{verb} {path} HTTP/1.1", "host: x", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


async def ask(w: World, data: bytes) -> Answer:
    async with await anyio.connect_tcp("127.0.0.1", w.port) as stream:
        return await send(stream, data)


async def send(stream: SocketStream, data: bytes) -> Answer:
    await stream.send(data)
    return await read_answer(stream)


async def read_answer(stream: SocketStream) -> Answer:
    got = b""
    while b"\r\n\r\n" not in got:
        got += await stream.receive()
    head, _, body = got.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    while len(body) < int(headers["content-length"]):
        body += await stream.receive()
    return Answer(int(first.split()[1]), headers, body)


async def test_curl_speaks_json() -> None:
    async with over_socket() as w:
        command = ["curl", "--silent", "--show-error", "--fail", "--json", '{"text": "hello", "count": "7"}']
        command += ["--header", f"Authorization: Bearer {TOKEN}", w.address + SAY]
        done = await anyio.run_process(command)
        assert json.loads(done.stdout) == {"text": "hello", "count": "7"}


async def test_a_misspelt_name_in_json_is_refused_and_named() -> None:
    async with over_socket() as w:
        answer = await ask(w, request("POST", LOOK, b'{"txet": "x"}', content_type="application/json"))
        assert answer.status == 400
        assert answer.json["code"] == "invalid_argument"
        assert "txet" in answer.json["message"]
        assert answer.json["details"][0]["debug"]["family"] == "invalid"


async def test_plain_routes_answer_beside_the_services() -> None:
    async with over_socket() as w:
        answer = await ask(w, request("GET", "/health?who=me", x_correlation_id="probe-1"))
        assert (answer.status, answer.body) == (200, b"ok me\n")
        assert answer.headers["x-correlation-id"] == "probe-1"
        made = await ask(w, request("GET", "/health", x_correlation_id="not one word"))
        assert re.fullmatch(r"req-[0-9a-z]{26}", made.headers["x-correlation-id"])


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (request("GET", "/nothing"), 404, "rpc.no_such_path"),
        (request("POST", "/health"), 405, "rpc.method"),
        (request("GET", "/private"), 401, "rpc.no_token"),
        (request("GET", "/private", authorization="Bearer reader"), 403, "rpc.role"),
        (request("GET", "/broken"), 500, "rpc.internal"),
    ],
)
async def test_a_plain_error_is_the_same_fields_as_json(data: bytes, status: int, code: str) -> None:
    async with over_socket(RequestLimits(body_bytes=4096)) as w:
        answer = await ask(w, data)
        assert (answer.status, answer.json["code"]) == (status, code)
        assert {"family", "sentence"} <= answer.json.keys()
        assert b"canary" not in answer.body


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (request("GET", SAY), 405, "rpc.method"),
        (request("POST", SAY, content_type="text/plain"), 415, "rpc.content_type"),
        (request("POST", SAY, content_type="application/grpc"), 415, "rpc.content_type"),
        (request("GET", LOOK, content_type="application/grpc"), 415, "rpc.content_type"),
        (request("POST", WATCH, content_type="application/json"), 415, "rpc.content_type"),
        (request("POST", LOOK, content_type="application/json", x_odd="\xff\xfe"), 400, "rpc.header"),
        (request("POST", LOOK, content_type="application/json", connect_timeout_ms="-1"), 400, "rpc.timeout"),
        (request("POST", LOOK, b"\xff", content_type="application/proto"), 400, "rpc.invalid_argument"),
        (request("POST", LOOK, b"[" * 4000, content_type="application/json"), 400, "rpc.too_deep"),
        (request("GET", LOOK + "?encoding=json&message=%ff%fe"), 400, "rpc.invalid_argument"),
        (request("POST", SAY, content_type="application/json; charset=utf-8"), 401, "rpc.no_token"),
        (
            request("POST", LOOK, b"{}", content_type="application/json", connect_timeout_ms="0"),
            504,
            "rpc.deadline",
        ),
    ],
)
async def test_a_refused_call_says_why_in_connects_form(data: bytes, status: int, code: str) -> None:
    async with over_socket() as w:
        answer = await ask(w, data)
        assert answer.status == status
        assert answer.json["details"][0]["debug"]["code"] == code


async def test_a_busy_server_says_when_to_come_back_and_still_answers_probes() -> None:
    async with over_socket(RequestLimits(calls=0)) as w:
        allowed = {"content_type": "application/json", "authorization": f"Bearer {TOKEN}"}
        answer = await ask(w, request("POST", SAY, b"{}", **allowed))
        assert (answer.status, answer.headers["retry-after"]) == (429, "1")
        assert (await ask(w, request("GET", "/health"))).status == 200


async def test_a_chunked_body_is_counted_as_it_comes() -> None:
    async with over_socket(RequestLimits(body_bytes=1000)) as w:
        head = f"POST {LOOK} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        answer = await ask(w, head.encode() + b"200\r\n" + b"x" * 512 + b"\r\n200\r\n" + b"x" * 512 + b"\r\n")
        assert answer.status == 413


async def test_headers_over_the_limit_are_refused() -> None:
    async with over_socket(RequestLimits(header_bytes=8192)) as w:
        stream = await anyio.connect_tcp("127.0.0.1", w.port)
        await stream.send(request("GET", "/health", x_long="x" * 20_000))
        assert (await stream.receive()).startswith(b"HTTP/1.1 431 ")
        await stream.aclose()


async def test_half_a_header_holds_nobody_up_and_is_ended() -> None:
    async with over_socket(RequestLimits(header_time=Duration.of(ms=300))) as w:
        slow = [await anyio.connect_tcp("127.0.0.1", w.port) for _ in range(20)]
        for stream in slow:
            await stream.send(b"POST /x HTTP/1.1\r\nhost: ")
        assert (await ask(w, request("GET", "/health"))).status == 200
        with anyio.fail_after(60):
            for stream in slow:
                with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                    await read_to_the_end(stream)
                await stream.aclose()


async def read_to_the_end(stream: SocketStream) -> None:
    while True:
        await stream.receive()


async def test_a_body_that_does_not_come_is_given_up() -> None:
    async with over_socket(RequestLimits(body_time=Duration.of(ms=100))) as w:
        data = request("POST", LOOK, b"{}", content_type="application/json")[:-1]
        answer = await ask(w, data)
        assert answer.status == 408
        assert answer.json["details"][0]["debug"]["code"] == "rpc.slow_body"


@pytest.mark.parametrize(("kind", "body"), [("json", b"{}"), ("proto", b"")])
async def test_a_client_that_hangs_up_cancels_the_handler(kind: str, body: bytes) -> None:
    async with over_socket() as w:
        async with await anyio.connect_tcp("127.0.0.1", w.port) as stream:
            await stream.send(
                request(
                    "POST", WAIT, body, content_type=f"application/{kind}", authorization=f"Bearer {TOKEN}"
                )
            )
            await w.echo.begun.wait()
        with anyio.fail_after(60):
            await w.echo.cancelled.wait()


PATHS = [SAY, LOOK, WATCH, "/health", "/private", "/", "*", "/%ff", LOOK + "?message=%00&encoding=json"]
KINDS = ["application/json", "application/proto", "application/connect+json", "application/grpc", "", "\xff"]
LATIN = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=20)


@st.composite
def nearly_right(draw: st.DrawFn) -> bytes:
    verb = draw(st.sampled_from(["GET", "POST", "PUT", "HEAD", "OPTIONS"]))
    path, kind = draw(st.sampled_from(PATHS)), draw(st.sampled_from(KINDS))
    body = draw(st.binary(max_size=60))
    return request(verb, path, body, content_type=kind, x_fuzz=draw(LATIN), connection="close")


async def test_no_bytes_bring_the_server_down_or_an_error_without_a_type() -> None:
    async with over_socket(RequestLimits(header_time=Duration.of(ms=500))) as w:

        @settings(max_examples=200, deadline=None)
        @given(st.binary(max_size=300) | nearly_right())
        def hostile(data: bytes) -> None:
            with socket.create_connection(("127.0.0.1", w.port), timeout=5) as raw:
                answer = b""
                try:
                    raw.sendall(data)
                    raw.shutdown(socket.SHUT_WR)
                    while chunk := raw.recv(65536):
                        answer += chunk
                except OSError:
                    pass  # hanging up on garbage is an answer too
            if re.match(rb"HTTP/1\.1 5", answer):
                body = json.loads(answer.partition(b"\r\n\r\n")[2])
                assert "family" in json.dumps(body)

        await anyio.to_thread.run_sync(hostile)
        assert (await ask(w, request("GET", "/health"))).status == 200
        assert (await w.client.say(Ping(text="alive"))).text == "alive"
