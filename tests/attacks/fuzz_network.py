"""Targets that read bytes of the network: RPC, HTTP as a server and as a client, SPDY and WebSocket."""

import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final

from anyio import EndOfStream
from anyio.from_thread import start_blocking_portal
from websockets.frames import Frame, Opcode

from neorion.keel.http.bounded_stream import BoundedStream
from neorion.keel.http.message import ProtocolError, ResponseParser
from neorion.keel.kube.client.websocket import WebSocket
from neorion.keel.kube.streams.exec import ExecSession
from neorion.keel.kube.streams.messages import Messages
from neorion.keel.kube.streams.port_forward import PortStream
from neorion.keel.kube.streams.spdy import Writer, data_frame
from neorion.keel.rpc import serve
from tests.attacks import rpc_fuzz
from tests.attacks.fuzz_target import Attempt, Target, awaited, cut, loop, mutants, pure
from tests.attacks.mutation import Rng

# RPC


@contextmanager
def _rpc() -> Generator[Attempt]:
    app, _ = rpc_fuzz.application()
    with loop() as run:
        yield lambda request: run(rpc_fuzz.send(app, *request))


def _requests(rng: Rng) -> Iterator[Any]:
    return rpc_fuzz.requests(rng, rpc_fuzz.application()[1])


# HTTP, as a server and as a client

REQUESTS: Final = [
    b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n",
    (
        b"POST /neorion.iris.v1.JobService/Get HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 2\r\nConnect-Timeout-Ms: 100\r\n\r\n{}"
    ),
    b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\nGET / HTTP/1.0\r\n\r\n",
    (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
        b"\x00\x00\x0d\x01\x05\x00\x00\x00\x01\x82\x86\x44\x07/health\x41\x01x"
    ),
]
HTTP_TOKENS: Final = [
    *(
        b"\r\n",
        b"\n",
        b"\r",
        b"\0",
        b":",
        b" ",
        b"\t",
        b";",
        b",",
        b"%00",
        b"%2e%2e/",
        b"\xff",
        b"0x",
        b"+",
        b"-1",
    ),
    *(b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n"),
    *(
        b"Content-Encoding: gzip\r\n",
        b"Expect: 100-continue\r\n",
        b"Upgrade: h2c\r\n",
        b"Connection: close, upgrade\r\n",
    ),
    *(
        b"Authorization: Bearer \r\n",
        b"x" * 9_000,
        b"FFFFFFFFFFFFFFFF\r\n",
        b"HTTP/9.9",
        b"\x00\x00\x00\x04\x00",
    ),
    *(b"\xff\xff\xff\x01\x05\x00\x00\x00\x01", b"\x00\x00\x04\x03\x00\x00\x00\x00\x01\x00\x00\x00\x08"),
]


@contextmanager
def _server() -> Generator[Attempt]:
    """A server of its own. One input is one connection, which ends with the input."""
    app, _ = rpc_fuzz.application()
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serve(app)) as server:
        port = server.port

        def attempt(body: bytes) -> str:
            with socket.create_connection(("127.0.0.1", port), timeout=30) as stream:
                answer = b""
                try:
                    stream.sendall(body)
                    stream.shutdown(socket.SHUT_WR)
                    while piece := stream.recv(65_536):
                        answer += piece
                except TimeoutError:
                    raise
                except OSError:
                    # It ended the connection before it had read everything.
                    return "refused"
            # An error without a type.
            assert b'"rpc.internal"' not in answer, answer
            return "read" if answer.startswith((b"HTTP/1.1 2", b"HTTP/1.1 404", b"\x00\x00")) else "refused"

        yield attempt


ANSWERS: Final = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: application/json\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x82\x01a",
    b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
]


def _answer(body: bytes) -> str:
    parser = ResponseParser()
    try:
        for piece in cut(body):
            parser.feed(piece)
            parser.take()
    except ProtocolError:
        return "refused"
    return "read" if parser.end() else "refused"


# Streams into pods


class _Pieces(Messages):
    """What a peer sends, in pieces. What is sent to it is dropped."""

    def __init__(self, body: bytes) -> None:
        self._pieces = cut(body)

    async def receive(self) -> bytes | None:
        return next(self._pieces, None)

    async def send(self, message: bytes) -> None:
        pass


async def _forward(body: bytes) -> str:
    stream = PortStream(_Pieces(body), 8080)
    try:
        while True:
            await stream.receive(1_000)
    except EndOfStream:
        return "read"


_SPDY: Final = Writer()
FRAMES: Final = [
    data_frame(3, b"hello") + data_frame(3, b"", last=True) + data_frame(1, b"", last=True),
    data_frame(1, b"no such port", last=True) + b"\x80\x03\x00\x06\x00\x00\x00\x04\x00\x00\x00\x02",
    _SPDY.open(1, {"streamtype": "error", "port": "80"}) + data_frame(3, b"x" * 300, last=True),
    b"\x80\x03\x00\x03\x00\x00\x00\x08\x00\x00\x00\x03\x00\x00\x00\x01\x80\x03\x00\x07\x00\x00\x00\x04\0\0\0\0",
]
FRAME_TOKENS: Final = [
    *(
        b"\x80\x03\x00\x01",
        b"\x80\x03\x00\x06\x00\x00\x00\x04",
        b"\x80\x02\x00\x06",
        b"\xff\xff\xff",
        b"\x00" * 8,
    ),
    *(b"\x00\x00\x00\x03\x01\x00\x00\x00", b"\x00\x00\x00\x01\x01\x00\x00\x00", b"\x7f\xff\xff\xff"),
]


class _Link(BoundedStream):
    """A connection whose peer sends `body`. What is written to it is dropped."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self._cuts = cut(body)

    @property
    def stands(self) -> bool:
        return True

    async def some(self) -> bytes:
        return next(self._cuts, b"")

    def write(self, data: bytes) -> None:
        pass

    async def drain(self) -> None:
        pass

    def finish(self) -> None:
        pass


async def _command(body: bytes) -> str:
    process = ExecSession(Messages(WebSocket(_Link(body), b"")))
    async for _ in process:
        pass
    return "read"


def _message(data: bytes, opcode: Opcode = Opcode.BINARY, *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=False)


_STATUS: Final = b'\x03{"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}'
MESSAGES: Final = [
    _message(b"\x01out")
    + _message(b"\x02err")
    + _message(b'\x03{"status":"Success"}')
    + _message(b"", Opcode.CLOSE),
    _message(_STATUS),
    _message(b"\x01a", fin=False)
    + _message(b"b", Opcode.CONT)
    + _message(b"", Opcode.PING)
    + _message(_STATUS),
    _message(b"\x01" + b"x" * 200) + _message(b"\x01" + b"y" * 70_000) + _message(_STATUS),
]
MESSAGE_TOKENS: Final = [
    *(
        b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x82\x7e\xff\xff",
        b"\x02\x00",
        b"\x00\x00",
        b"\x80\x00",
        b"\x88\x00",
    ),
    *(
        b"\x89\x7d",
        b"\x81\x02hi",
        b"\xf2\x01x",
        b"\x82\x81\x00\x00\x00\x00x",
        b'"message":"',
        b"999999999999999999999",
    ),
    *(b"null", b"[" * 2_000, b'{"a":' * 2_000, b"\xff\xfe", b"-"),
]


NETWORK_TARGETS: Final[dict[str, Target]] = {
    "rpc": Target(_rpc, _requests),
    "http-request": Target(_server, mutants(REQUESTS, HTTP_TOKENS)),
    "http-answer": Target(lambda: pure(_answer), mutants(ANSWERS, HTTP_TOKENS)),
    "spdy": Target(lambda: awaited(_forward), mutants(FRAMES, FRAME_TOKENS)),
    "websocket": Target(lambda: awaited(_command), mutants(MESSAGES, MESSAGE_TOKENS)),
}
