"""Calls served, and streams fanned out, by keel.rpc; beside it the same service on connectrpc and granian alone.

The server runs in a process of its own, so that its CPU time is its own: `python -m bench.keel.rpc ours|bare`.
"""

import asyncio
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path

from connectrpc.request import RequestContext

from bench.keel.gen.fleet_connect import Fleet, FleetASGIApplication
from bench.keel.gen.fleet_pb import Gpu, Heartbeat, Orders
from bench.kit import Report

Context = RequestContext[Heartbeat, Orders]

IN_FLIGHT = 32
CALLS = 1_024
READERS = 1_000
TICKS = 10
BEARER = "bench-token"
MARK = b"tick-mark"
SERVICE = "neorion.bench.rpc.v1.Fleet"


class Control(Fleet):
    """Answers heartbeats and tells every watcher of each one that comes from "publisher"."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    async def beat(self, request: Heartbeat, _ctx: Context, /) -> Orders:
        if request.node == "publisher":
            self._next.set()
            self._next = asyncio.Event()
        return Orders(sequence=request.sequence)

    async def watch(self, _request: Heartbeat, _ctx: Context, /) -> AsyncIterator[Orders]:
        while True:
            following = self._next
            yield Orders(sequence=1, commands=[MARK.decode()])
            await following.wait()


async def serve_ours() -> None:
    from neorion.keel.clock import SystemIds  # noqa: PLC0415 -- the bare server must not load ours
    from neorion.keel.rpc import AsgiApp, Principal, RpcService, TokenAuthenticator, serve  # noqa: PLC0415 -- as above

    service = RpcService(FleetASGIApplication, Control(), {"Beat": {"agent"}, "Watch": {"agent"}})
    tokens = TokenAuthenticator({BEARER: Principal("node-1", frozenset({"agent"}))})
    async with serve(AsgiApp([service], ids=SystemIds(), authenticator=tokens)) as server:
        print(server.port, flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def serve_bare() -> None:
    from granian.constants import Interfaces  # noqa: PLC0415 -- only in the server's process
    from granian.server.embed import Server  # noqa: PLC0415 -- as above

    port = int(sys.argv[2])
    app = FleetASGIApplication(Control())
    server = Server(app, port=port, interface=Interfaces.ASGINL, backpressure=16_384, log_enabled=False)
    task = asyncio.create_task(server.serve())
    await asyncio.sleep(0.5)
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.stop()
    await task


@contextmanager
def server_process(kind: str) -> Generator[tuple[int, int]]:
    """The port and the process id of a server."""
    command = [sys.executable, "-m", "bench.keel.rpc", kind, str(free_port())]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield int(process.stdout.readline()), process.pid
    finally:
        process.communicate(timeout=10)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def cpu_ns(pid: int) -> int:
    """All threads of the process, in nanoseconds as the scheduler counts them."""
    return sum(
        int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()
    )


def request(method: str, body: bytes, kind: str) -> bytes:
    lines = [
        f"POST /{SERVICE}/{method} HTTP/1.1",
        "host: 127.0.0.1",
        f"content-type: {kind}",
        "connect-protocol-version: 1",
        "connect-timeout-ms: 30000",
        f"authorization: Bearer {BEARER}",
        "x-correlation-id: req-01k00000000000000000000000",
        f"content-length: {len(body)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def heartbeat(node: str) -> bytes:
    gpus = [
        Gpu(uuid=f"GPU-{n:032x}", temperature=61.5, power=512.25, utilisation=0.97, memory_used=71 << 30)
        for n in range(8)
    ]
    return Heartbeat(node=node, sequence=12_345, gpus=gpus).to_binary()


async def call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    await reader.readexactly(length)


async def beats(port: int) -> None:
    data = request("Beat", heartbeat("node-1"), "application/proto")

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(CALLS // IN_FLIGHT):
            await call(reader, writer, data)
        writer.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(one())


class Reader(asyncio.Protocol):
    """One watcher: counts what arrives and remembers when."""

    def __init__(self, data: bytes, arrived: list[float], tick: "Tick") -> None:
        self._data = data
        self._arrived = arrived
        self._tick = tick
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._data)

    def data_received(self, data: bytes) -> None:
        found = self._tail + data
        now = time.perf_counter()
        for _ in range(found.count(MARK)):
            self._arrived.append(now)
            self._tick.one_more()
        self._tail = found[found.rfind(MARK) + len(MARK) :] if MARK in found else found


class Tick:
    """Set once every reader has the current message."""

    def __init__(self) -> None:
        self.done = asyncio.Event()
        self._missing = READERS

    def one_more(self) -> None:
        self._missing -= 1
        if self._missing == 0:
            self._missing = READERS
            self.done.set()


async def fan_out(port: int) -> tuple[float, float]:
    """Messages delivered per second, and the 99th percentile from publishing to arrival in milliseconds."""
    loop = asyncio.get_running_loop()
    arrived: list[float] = []
    tick = Tick()
    body = heartbeat("node-1")
    data = request("Watch", len(body).to_bytes(5, "big") + body, "application/connect+proto")
    transports: list[asyncio.BaseTransport] = []
    for _ in range(READERS):
        transport, _ = await loop.create_connection(lambda: Reader(data, arrived, tick), "127.0.0.1", port)
        transports.append(transport)
    await tick.done.wait()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    publish = request("Beat", heartbeat("publisher"), "application/proto")
    latencies: list[float] = []
    begin = time.perf_counter()
    for _ in range(TICKS):
        tick.done.clear()
        arrived.clear()
        sent = time.perf_counter()
        await call(reader, writer, publish)
        await tick.done.wait()
        latencies.extend(when - sent for when in arrived)
    spent = time.perf_counter() - begin
    for transport in (*transports, writer.transport):
        transport.close()
    return READERS * TICKS / spent, statistics.quantiles(latencies, n=100)[98] * 1000


def run(report: Report) -> None:
    with server_process("ours") as ours, server_process("bare") as bare:

        def cpu(server: tuple[int, int]) -> float:
            before = cpu_ns(server[1])
            asyncio.run(beats(server[0]))
            return (cpu_ns(server[1]) - before) / CALLS / 1000

        def rate(server: tuple[int, int]) -> float:
            before = time.perf_counter()
            asyncio.run(beats(server[0]))
            return CALLS / (time.perf_counter() - before)

        name = "connectrpc + granian"
        for server in (ours, bare):
            rate(server)
        report.compare(
            "server CPU per heartbeat", "µs", lambda: cpu(ours), (name, lambda: cpu(bare)), rounds=25
        )
        report.compare(
            "heartbeats, 32 in flight", "/s", lambda: rate(ours), (name, lambda: rate(bare)), rounds=15
        )
        report.compare(
            "stream messages to 1,000 readers",
            "/s",
            lambda: asyncio.run(fan_out(ours[0]))[0],
            (name, lambda: asyncio.run(fan_out(bare[0]))[0]),
        )
        report.compare(
            "p99 from publishing to 1,000 readers",
            "ms",
            lambda: asyncio.run(fan_out(ours[0]))[1],
            (name, lambda: asyncio.run(fan_out(bare[0]))[1]),
        )


if __name__ == "__main__":
    asyncio.run({"ours": serve_ours, "bare": serve_bare}[sys.argv[1]]())
