"""What agents cost the control plane: processor time for a heartbeat and a report, fleets at default intervals, fault to cordon.

The server runs in a process of its own with a store on disk, as in production, and light agents speak to it over loopback:
`python -m bench.navarch.agents NODES uvloop|asyncio`. The original in Go spends 143 µs of CPU for a heartbeat and 113 µs for a report, keeps 1 kB
of each for ever, and cordons a node 3 s after a fault at a 5 s poll, 60 s at its defaults.
"""

import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvloop

from bench.keel.rpc import call, cpu_ns, server_process
from bench.keel.rpc import heartbeat as plain_heartbeat
from bench.keel.rpc import request as plain_request
from bench.kit import Report
from neorion.capacity.fake import FakeCloud, FakeCloudOptions, FakeProvider
from neorion.capacity.provider import Intent, IntentId, Machine
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.rpc import serve
from neorion.keel.store import open_store
from neorion.navarch.adapters.config_file import default_policy
from neorion.navarch.adapters.null import NoDemand, NoScheduler
from neorion.navarch.adapters.policy_engine import SubprocessPolicyEngine
from neorion.navarch.app.control_plane import (
    MIGRATIONS,
    ControlPlane,
    ControlPlaneSettings,
    Dependencies,
    build,
)
from neorion.navarch.controllers.context import Backends
from neorion.navarch.model import Node, NodeId, NodeState, Placement, PoolSpec, PoolState
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.spec import (
    Budget,
    CommonCause,
    CountOrPercent,
    HealthRules,
    Offer,
    Scaling,
    Timing,
)

IN_FLIGHT = 32
CALLS = 2_000
FAULTS = 100
INTERVAL_S = 30.0
# Two intervals: every agent has spoken twice.
WATCHED_S = 60.0
TYPE, REGION, POOL = "gpu_8x_h100_sxm5", "us-west-2", "training"
SERVICE = "neorion.navarch.v1.AgentService"
# The first is the one that `navarch serve` runs on.
LOOPS = {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


class Stopwatch(NoScheduler):
    """Says when it is told of a cordon; the monotonic clock is one for all processes."""

    async def cordon(self, node: Node, why: str) -> None:
        del why
        if node.served is not None and node.state is NodeState.CORDONED:
            print(json.dumps({"cordoned": node.id, "at": time.monotonic()}), flush=True)


def spec(nodes: int) -> PoolSpec:
    """Nothing is held back: what is measured is the way from a fault to a cordon."""
    rules = HealthRules(budgets=(Budget(CountOrPercent(count=nodes)),), cause=CommonCause(least=nodes + 1))
    # Agents of a bench are silent between its rounds, and on a busy machine for long.
    timing = Timing(silence=Duration.of(hours=1))
    return PoolSpec(
        POOL, (Offer("fake", TYPE, (REGION,)),), scaling=Scaling(0, nodes), health=rules, timing=timing
    )


def populate(plane: ControlPlane, cloud: FakeCloud, nodes: int) -> list[str]:
    """So many nodes that serve, and the tokens of their agents."""
    context = plane.fleet.context
    tokens: list[str] = []
    context.state.put_pool(PoolState(POOL, wanted=nodes))
    for _ in range(nodes):
        machine: Machine = cloud.make(
            Intent(context.ids.new(IntentId), context.installation.id, TYPE, REGION)
        ).as_machine(context.clock.now())
        now, node = context.clock.now(), context.ids.new(NodeId)
        context.state.put_node(
            Node(
                node,
                POOL,
                Placement("fake", TYPE, REGION),
                now,
                now,
                NodeState.ACTIVE,
                machine=machine.id,
                gpus=8,
                served=now,
            )
        )
        tokens.append(plane.keys.token_of(node))
    return tokens


@asynccontextmanager
async def plane_of(nodes: int, folder: Path) -> AsyncGenerator[tuple[ControlPlane, FakeCloud]]:
    clock, rng, ids = SystemClock(), system_rng(), SystemIds()
    cloud = FakeCloud(clock, rng, FakeCloudOptions(boot=Duration(0)))
    policies = {"default": default_policy()}
    async with (
        SubprocessPolicyEngine(policies) as engine,
        open_store(folder / "navarch.db", migrations=MIGRATIONS, clock=clock) as store,
        build(
            ControlPlaneSettings({POOL: spec(nodes)}, "operator-token"),
            Backends({"fake": FakeProvider("fake", cloud)}, Stopwatch(), NoDemand(), engine),
            Dependencies(store, clock, ids, rng),
        ) as plane,
    ):
        yield plane, cloud


async def serve_nodes(nodes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with plane_of(nodes, Path(folder)) as (plane, cloud), serve(plane.app) as server:
            tokens = populate(plane, cloud, nodes)
            await plane.fleet.context.journal.wait_durable()
            print(json.dumps({"port": server.port, "tokens": tokens}), flush=True)
            await asyncio.to_thread(sys.stdin.read)


@dataclass(frozen=True, slots=True)
class Peer:
    """A server process, and what its agents need."""

    process: subprocess.Popen[str]
    port: int
    tokens: list[str]

    def cpu_us(self) -> float:
        """Of the server and of the child that judges for it."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        children = {int(pid) for task in tasks for pid in (task / "children").read_text().split()}
        return sum(cpu_ns(pid) for pid in (self.process.pid, *children)) / 1000

    def resident_mb(self) -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (found,) = [line for line in lines if line.startswith("VmRSS")]
        return int(found.split()[1]) / 1000


@contextmanager
def served(nodes: int, loop: str = "uvloop") -> Generator[Peer]:
    command = [sys.executable, "-m", "bench.navarch.agents", str(nodes), loop]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        told = json.loads(process.stdout.readline())
        yield Peer(process, told["port"], told["tokens"])
    finally:
        process.communicate(timeout=60)


def request(method: str, token: str, body: bytes) -> bytes:
    lines = [
        f"POST /{SERVICE}/{method} HTTP/1.1",
        "host: 127.0.0.1",
        "content-type: application/proto",
        "connect-protocol-version: 1",
        "connect-timeout-ms: 30000",
        f"authorization: Bearer {token}",
        "x-correlation-id: req-01k00000000000000000000000",
        f"content-length: {len(body)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def heartbeat(token: str) -> bytes:
    gpus = [
        pb.Gpu(
            index=index,
            uuid=f"GPU-{index:032x}",
            model="H100",
            temperature_celsius=61.5,
            power_watts=512.25,
            utilisation_percent=97.0,
            memory_used_bytes=71 << 30,
        )
        for index in range(8)
    ]
    return request("Heartbeat", token, pb.HeartbeatRequest(gpus=gpus, tested=True).to_binary())


def report_of(token: str, batch: int, xid: int) -> bytes:
    now = time.time_ns() // 1_000_000
    event = pb.HealthEvent(at_ms=now, kind="xid", xid=xid, gpu=1, message="NVRM: Xid (PCI:0000:1b:00)")
    return request("Report", token, pb.ReportRequest(boot="bench", first=batch, events=[event]).to_binary())


async def send(port: int, requests: Sequence[bytes]) -> None:
    """All of them, a number at a time, each connection one after the other."""

    async def one(mine: Sequence[bytes]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for data in mine:
            await call(reader, writer, data)
        writer.close()

    async with asyncio.TaskGroup() as group:
        for first in range(min(IN_FLIGHT, len(requests))):
            group.create_task(one(requests[first::IN_FLIGHT]))


def _calls(report: Report) -> None:
    with served(CALLS) as ours, served(CALLS, "asyncio") as other, server_process("ours") as plain:
        numbers = iter(range(1, 10**9))

        def heartbeats(server: Peer = ours) -> float:
            before = server.cpu_us()
            beats = [heartbeat(token) for token in server.tokens]
            asyncio.run(send(server.port, beats))
            return (server.cpu_us() - before) / CALLS

        def on_asyncio() -> float:
            return heartbeats(other)

        def reports() -> float:
            """An application's error, judged in the child process and made durable before it is answered."""
            before = ours.cpu_us()
            asyncio.run(send(ours.port, [report_of(token, next(numbers), 13) for token in ours.tokens]))
            return (ours.cpu_us() - before) / CALLS

        def empty() -> float:
            before = cpu_ns(plain[1]) / 1000
            data = plain_request("Beat", plain_heartbeat("node-1"), "application/proto")
            asyncio.run(send(plain[0], [data] * CALLS))
            return (cpu_ns(plain[1]) / 1000 - before) / CALLS

        name = "keel.rpc answering nothing"
        for warm_up in (heartbeats, on_asyncio, empty):
            warm_up()
        report.compare("server CPU per heartbeat (Go: 143)", "µs", heartbeats, (name, empty))
        report.compare("server CPU per heartbeat", "µs", heartbeats, ("on asyncio's own loop", on_asyncio))
        report.compare("server CPU per report (Go: 113, nothing durable)", "µs", reports, (name, empty))
        before = ours.resident_mb()
        for _ in range(5):
            reports()
        growth = (ours.resident_mb() - before) * 1e6 / (5 * CALLS)
        report.alone("memory kept per report (Go: 1,030)", "bytes", lambda: growth, rounds=1)


def _fleet(report: Report, nodes: int) -> None:
    """Every agent has a connection of its own and beats at the default interval, spread over it."""
    with served(nodes) as ours:
        beats = [heartbeat(token) for token in ours.tokens]
        seen = asyncio.run(_steady(ours, beats))
        report.alone(f"{nodes:,} agents every 30 s: of one core", "%", lambda: seen.share, rounds=1)
        report.alone(f"{nodes:,} agents: memory", "MB", lambda: seen.resident_mb, rounds=1)
        report.alone(
            f"{nodes:,} agents: connected at once at the start", "", lambda: float(seen.connections), rounds=1
        )
        again = seen.reopened / len(seen.took) * 100
        report.alone(f"{nodes:,} agents: calls that had to connect again", "%", lambda: again, rounds=1)
        for share in (50, 99):
            took = statistics.quantiles(seen.took, n=100)[share - 1]
            report.alone(
                f"{nodes:,} agents: p{share} of an answer", "ms", lambda took=took: took * 1000, rounds=1
            )


@dataclass(slots=True)
class Seen:
    """What a fleet at its usual pace came to."""

    took: list[float]
    connections: int = 0
    reopened: int = 0
    share: float = 0.0
    resident_mb: float = 0.0


async def _steady(ours: Peer, beats: Sequence[bytes]) -> Seen:
    """Measured when all are connected and have beaten once."""
    seen = Seen([])
    loop = asyncio.get_running_loop()
    opening = asyncio.Semaphore(IN_FLIGHT)
    connected, ready, begin = asyncio.Event(), asyncio.Event(), 0.0

    async def agent(number: int) -> None:
        async with opening:
            reader, writer = await asyncio.open_connection("127.0.0.1", ours.port)
            await call(reader, writer, beats[number])
        seen.connections += 1
        if seen.connections == len(beats):
            connected.set()
        await ready.wait()
        for turn in range(round(WATCHED_S / INTERVAL_S)):
            due = begin + (turn + number / len(beats)) * INTERVAL_S
            await asyncio.sleep(max(0.0, due - loop.time()))
            sent = loop.time()
            try:
                await call(reader, writer, beats[number])
            except (OSError, EOFError):
                # The server does not wait for ever for the next request; an agent comes back, as this one.
                seen.reopened += 1
                reader, writer = await asyncio.open_connection("127.0.0.1", ours.port)
                await call(reader, writer, beats[number])
            seen.took.append(loop.time() - sent)
        writer.close()

    async with asyncio.TaskGroup() as group:
        for number in range(len(beats)):
            group.create_task(agent(number))
        await connected.wait()
        before, begin = ours.cpu_us(), loop.time()
        ready.set()
    seen.share = (ours.cpu_us() - before) / 1e4 / (loop.time() - begin)
    seen.resident_mb = ours.resident_mb()
    return seen


def _cordon(report: Report, nodes: int) -> None:
    """From an agent that sends what it saw to a scheduler that has taken note, while all agents beat as usual."""
    with served(nodes) as ours:
        took = asyncio.run(_struck(ours))
        p50, p99 = (statistics.quantiles(took, n=100)[share - 1] * 1000 for share in (50, 99))
        name = f"fault to cordon, {nodes:,} nodes"
        report.alone(f"{name}, p50 (Go: 3,000 to 60,000)", "ms", lambda: p50, rounds=1)
        report.alone(f"{name}, p99", "ms", lambda: p99, rounds=1)


async def _struck(ours: Peer) -> list[float]:
    beats = [heartbeat(token) for token in ours.tokens]
    await send(ours.port, beats)
    took: list[float] = []

    async def beat_on() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", ours.port)
        while True:
            for data in beats:
                await call(reader, writer, data)
                await asyncio.sleep(INTERVAL_S / len(beats))

    async with asyncio.TaskGroup() as group:
        beating = group.create_task(beat_on())
        for token in ours.tokens[:FAULTS]:
            began = time.monotonic()
            await send(ours.port, [report_of(token, 1, 79)])
            assert ours.process.stdout
            took.append(json.loads(await asyncio.to_thread(ours.process.stdout.readline))["at"] - began)
        beating.cancel()
    return took


def run(report: Report) -> None:
    # An agent is a connection: this process holds one end of each, and the server, which inherits the limit, the other.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    _calls(report)
    for nodes in (1_000, 10_000):
        _fleet(report, nodes)
        _cordon(report, nodes)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=LOOPS[sys.argv[2]]) as runner:
        runner.run(serve_nodes(int(sys.argv[1])))
