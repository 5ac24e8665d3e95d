"""The parsers that read what others write: a corpus, tokens, and one attempt for each."""

import asyncio
import io
import shutil
import socket
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from anyio import EndOfStream
from anyio.from_thread import start_blocking_portal
from websockets.frames import Frame, Opcode

from neorion.devservers.client.file_copy import unpack as unpack_tar
from neorion.iris.adapters.cluster_file import ClusterFile
from neorion.iris.adapters.runtimes.process.task.bundle import unpack as unpack_bundle
from neorion.keel.clock import seeded_rng
from neorion.keel.config import loads
from neorion.keel.http.bounded_stream import BoundedStream
from neorion.keel.http.message import ProtocolError, ResponseParser
from neorion.keel.kube.client import read_kubeconfig
from neorion.keel.kube.client.websocket import WebSocket
from neorion.keel.kube.streams.exec import ExecSession
from neorion.keel.kube.streams.messages import Messages
from neorion.keel.kube.streams.port_forward import PortStream
from neorion.keel.kube.streams.spdy import Writer, data_frame
from neorion.keel.rpc import serve
from neorion.navarch.decide.policy import NodeHistory, Policy, Rule, compiled, evaluate, policy_input
from neorion.navarch.model import EventKind, Health, HealthEvent
from neorion.navarch.testing import NOW, node
from tests.attacks import rpc_fuzz
from tests.attacks.mutation import Rng, spliced

Attempt: TypeAlias = Callable[[Any], str]
ROOT: Final = Path(__file__).parents[2]
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 -- a folder below it is made, with a name of its own


@dataclass(frozen=True, slots=True)
class Target:
    """One parser. `quick` is how many inputs it takes in about five seconds, at most 20,000."""

    opened: Callable[[], Any]
    inputs: Callable[[Rng], Iterator[Any]]
    quick: int = 20_000


def _mutants(corpus: list[bytes], tokens: list[bytes]) -> Callable[[Rng], Iterator[bytes]]:
    def found(rng: Rng) -> Iterator[bytes]:
        yield from corpus
        while True:
            yield spliced(rng, corpus, tokens)

    return found


def _cut(body: bytes) -> Iterator[bytes]:
    """The same bytes in pieces of any size, which depend on the bytes alone."""
    rng = seeded_rng(zlib.crc32(body))
    at = 0
    while at < len(body):
        to = at + rng.choice((1, 2, 7, 64, 4_096))
        yield body[at:to]
        at = to


@contextmanager
def _folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        yield Path(folder)


@contextmanager
def _loop() -> Generator[Callable[[Any], Any]]:
    with asyncio.Runner() as runner:
        yield runner.run


# RPC


@contextmanager
def _rpc() -> Generator[Attempt]:
    app, _ = rpc_fuzz.application()
    with _loop() as run:
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
        for piece in _cut(body):
            parser.feed(piece)
            parser.take()
    except ProtocolError:
        return "refused"
    return "read" if parser.end() else "refused"


# Streams into pods


class _Pieces(Messages):
    """What a peer sends, in pieces. What is sent to it is dropped."""

    def __init__(self, body: bytes) -> None:
        self._pieces = _cut(body)

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
        self._cuts = _cut(body)

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


@contextmanager
def _awaited(attempt: Callable[[bytes], Any]) -> Generator[Attempt]:
    with _loop() as run:
        yield lambda body: run(attempt(body))


# Archives


def _tar(*members: tuple[str, bytes, str]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:", format=tarfile.PAX_FORMAT) as archive:
        for name, kind, link in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.size = kind, link, 3 if kind == tarfile.REGTYPE else 0
            archive.addfile(member, io.BytesIO(b"abc"))
    # Without the padding at the end, in which changes would mean nothing.
    return made.getvalue().rstrip(b"\0") + bytes(1024)


TARS: Final = [
    _tar(("data", tarfile.DIRTYPE, ""), ("data/a", tarfile.REGTYPE, ""), ("data/b", tarfile.SYMTYPE, "a")),
    _tar(
        ("data/a", tarfile.REGTYPE, ""),
        ("data/c", tarfile.LNKTYPE, "data/a"),
        ("data/p", tarfile.FIFOTYPE, ""),
    ),
    _tar(("data/" + "é" * 120, tarfile.REGTYPE, ""), ("data/dev", tarfile.CHRTYPE, "")),
]
TAR_TOKENS: Final = [
    *(
        b"../",
        b"/etc/",
        b"data/",
        b"\0",
        b"\x80\0\0\0\0\0\0\0\0\0\x01",
        b"\xff" * 12,
        b"00000000000",
        b"77777777777",
    ),
    *(b"0", b"1", b"2", b"5", b"L", b"K", b"x", b"g", b"S", b"ustar\x0000", b"ustar  ", b"30 path=../../x\n"),
    *(
        b"19 size=-1\n",
        b"25 GNU.sparse.major=1\n",
        b"30 GNU.sparse.map=0,9,99,9\n",
        b"99999999999 x=",
        b"12 mtime=nan\n",
    ),
]


@contextmanager
def _copies() -> Generator[Attempt]:
    with _folder() as folder:
        inside = folder / "inside"
        (folder / "precious").write_text("mine")

        def attempt(body: bytes) -> str:
            inside.mkdir()
            try:
                unpack_tar(io.BytesIO(_summed(body)), "data", inside, "mine")
            finally:
                shutil.rmtree(inside)
                assert sorted(path.name for path in folder.iterdir()) == ["precious"], "it wrote outside"
            return "read"

        yield attempt


def _summed(body: bytes) -> bytes:
    """The same archive with a right checksum in every second one: otherwise few would be read further than that."""
    if len(body) % 2:
        return body
    changed = bytearray(body)
    for at in range(0, len(changed) - 511, 512):
        if changed.startswith(b"ustar", at + 257):
            changed[at + 148 : at + 156] = b" " * 8
            changed[at + 148 : at + 155] = b"%06o\0" % sum(changed[at : at + 512])
    return bytes(changed)


def _zip(**files: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/"), text)
    return made.getvalue()


ZIPS: Final = [_zip(main="print(1)" * 40, pkg__a="x", pkg__b="y" * 900), _zip(one="1"), _zip()]
ZIP_TOKENS: Final = [
    *(
        b"PK\x03\x04",
        b"PK\x01\x02",
        b"PK\x05\x06",
        b"PK\x06\x06",
        b"PK\x06\x07",
        b"../",
        b"/",
        b"\\",
        b"\0",
        b"C:",
    ),
    *(
        b"\xff\xff\xff\xff",
        b"\xff\xff",
        b"\x08\x00",
        b"\x0c\x00",
        b"\x0e\x00",
        b"\x63\x00",
        b"\x01\x00",
        b"\x00" * 4,
    ),
]


@contextmanager
def _bundles() -> Generator[Attempt]:
    with _folder() as folder:
        source, inside = folder / "bundle.zip", folder / "inside"

        def attempt(body: bytes) -> str:
            source.write_bytes(body)
            inside.mkdir()
            try:
                unpack_bundle(source, inside)
            finally:
                shutil.rmtree(inside)
                assert [path.name for path in folder.iterdir()] == ["bundle.zip"], "it wrote outside"
            return "read"

        yield attempt


# Files that people write

YAML_TOKENS: Final = [
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b": ",
        b"- ",
        b"\n",
        b"\n  ",
        b"&a ",
        b"*a",
        b"<<: *a",
        b"!!binary ",
        b"!!int ",
    ),
    *(
        b"!!timestamp x",
        b"!!set",
        b"!!python/object:os.system ",
        b"|",
        b">-",
        b"'",
        b'"',
        b'"\\ud800"',
        b"#",
        b"? ",
    ),
    *(
        b"---\n",
        b"...\n",
        b"%YAML 9.9\n",
        b"\t",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"null",
        b"~",
        b".nan",
        b"1e999",
    ),
    *(
        b"0b",
        b"0o9",
        b"2001-99-99",
        b"190:20:30",
        b"9" * 5_000,
        b"[" * 2_000,
        b"- " * 2_000,
        b"{a: " * 2_000,
        b"${HOME}",
    ),
]
KUBECONFIGS: Final = [
    (
        b"apiVersion: v1\nkind: Config\ncurrent-context: home\ncontexts:\n- name: home\n  context: {cluster: c, user: u}\n"
        b"clusters:\n- name: c\n  cluster:\n    server: https://h:6443\n    certificate-authority-data: Y2E=\n"
        b"users:\n- name: u\n  user:\n    token: t\n    as: ann\n    as-groups: [devs]\n"
    ),
    (
        b"current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nclusters: [&c {name: c, cluster: "
        b"{server: 'https://h', proxy-url: 'http://p:1'}}]\nusers:\n- name: u\n  user:\n    exec: {command: x, apiVersion: "
        b"client.authentication.k8s.io/v1, args: [a], env: [{name: A, value: b}]}\n"
    ),
]


@contextmanager
def _kubeconfigs() -> Generator[Attempt]:
    with _folder() as folder:
        path = folder / "config"

        def attempt(body: bytes) -> str:
            path.write_bytes(body)
            read_kubeconfig([path]).cluster()
            return "read"

        yield attempt


CLUSTER_FILES: Final = [
    path.read_bytes() for path in sorted((ROOT / "tests/iris/cluster_files").glob("*.yaml"))
]


@contextmanager
def _cluster_files() -> Generator[Attempt]:
    def attempt(body: bytes) -> str:
        loads(body.decode(errors="replace"), ClusterFile, {"HOME": "/"})
        return "read"

    yield attempt


RULES: Final = [
    b'event.xid == 79 && node.gpu_count > 0 || event.message.startsWith("fell")',
    b"recent.exists(e, e.xid == 63) || history.same_1h > 2",
    b'event.metrics["temp"] > 90.5 ? true : size(recent) >= 3',
    b'event.type in ["xid", "ecc"] && !(node.state == "active")',
]
RULE_TOKENS: Final = [
    *(
        b"event",
        b"node",
        b"recent",
        b".xid",
        b".exists(e,e)",
        b"(",
        b")",
        b"[",
        b"]",
        b"{",
        b"}",
        b"==",
        b"&&",
        b"!",
    ),
    *(
        b"?",
        b":",
        b"-",
        b"/",
        b"%",
        b"0",
        b"1e308",
        b"9223372036854775807",
        b'"a"',
        b"b'\\xff'",
        b".matches('(a+)+$')",
    ),
    *(
        b"(" * 500,
        b"[" * 500,
        b"!" * 500,
        b"-" * 500,
        b"a?b:" * 300,
        b"has(",
        b"dyn(",
        b"int(",
        b"timestamp('x')",
        b"\0",
    ),
    *(b".map(x,", b".all(x,", b"\xc3\xa9", b'"""', b"//", b"0x", b"1u", b"duration('9999999999h')"),
]
# Each may take as long as it likes, so evaluation happens in a process with limits. Compiling does not.
_LOOPS: Final = (".map(", ".all(", ".exists", ".filter(", "matches")
_SITUATION: Final = policy_input(HealthEvent(NOW, EventKind.XID, gpu=0, xid=79), node(), NodeHistory(), NOW)


@contextmanager
def _rules() -> Generator[Attempt]:
    def attempt(body: bytes) -> str:
        text = body.decode(errors="replace")
        policy = compiled(Policy("mine", (Rule("one", text, Health.UNHEALTHY),)))
        if not any(loop in text for loop in _LOOPS):
            evaluate(policy, _SITUATION)
        return "read"

    yield attempt


@contextmanager
def _pure(attempt: Attempt) -> Generator[Attempt]:
    yield attempt


TARGETS: Final[dict[str, Target]] = {
    "rpc": Target(_rpc, _requests),
    "http-request": Target(_server, _mutants(REQUESTS, HTTP_TOKENS)),
    "http-answer": Target(lambda: _pure(_answer), _mutants(ANSWERS, HTTP_TOKENS)),
    "spdy": Target(lambda: _awaited(_forward), _mutants(FRAMES, FRAME_TOKENS)),
    "websocket": Target(lambda: _awaited(_command), _mutants(MESSAGES, MESSAGE_TOKENS)),
    "tar": Target(_copies, _mutants(TARS, TAR_TOKENS)),
    "bundle": Target(_bundles, _mutants(ZIPS, ZIP_TOKENS)),
    "kubeconfig": Target(_kubeconfigs, _mutants(KUBECONFIGS, YAML_TOKENS)),
    "cluster-file": Target(_cluster_files, _mutants(CLUSTER_FILES, YAML_TOKENS), quick=15_000),
    "cel": Target(_rules, _mutants(RULES, RULE_TOKENS)),
}
