"""Two replicas as processes over one store: one leads, and when it is killed the other goes on where it was."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import boto3  # pyright: ignore[reportMissingTypeStubs] -- made at run time, it has none
import pytest
from anyio import to_thread

from neorion.keel.base import Duration, Retry
from neorion.keel.clock import SystemClock, SystemIds
from neorion.keel.rpc import connect
from neorion.navarch.client import NavarchClient
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.gen.navarch_client import AgentServiceClient
from tests.capacity.clouds.ec2 import IMAGE, KEYS, ec2
from tests.keel.store.postgres_server import postgres_server

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]

TOKEN = "operator-secret"
# A replica that takes over PostgreSQL waits out the lease of the one before.
PATIENCE_S = 120
CLOCK = SystemClock()
# Processes send no events: they are looked at.
_LOOK = Duration.of(ms=50)
FILE = """
server: {{ address: "127.0.0.1:{port}", state_dir: {folder}, store: "{store}", heartbeat_interval: 60s, tls: none }}
providers: {{ aws: {{ region: us-west-2, api_url: "{url}" }} }}
pools:
  - name: training
    provider: aws
    instance_type: p5.48xlarge
    image: {image}
    min_nodes: 2
    max_nodes: 2
    surge: 1
"""


@dataclass
class Replica:
    """One `navarch serve`."""

    name: str
    port: int
    process: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    async def get(self, path: str) -> tuple[int, str]:
        """Status and body; 0 where nobody listens."""
        try:
            stream = await anyio.connect_tcp("127.0.0.1", self.port)
        except OSError:
            return 0, ""
        async with stream:
            await stream.send(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            try:
                while True:
                    answer += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                pass
        head, _, body = answer.decode().partition("\r\n\r\n")
        return int(head.split()[1]) if head else 0, body


@dataclass
class Fleet:
    """Both replicas, whichever leads, and the agents of all machines in few words."""

    replicas: list[Replica]
    tokens: dict[str, str] = field(default_factory=dict[str, str])

    async def leader(self) -> Replica:
        """Waits until one of those that live is ready."""
        with anyio.fail_after(PATIENCE_S):
            while True:
                for one in self.replicas:
                    if one.process.poll() is None and (await one.get("/readyz"))[0] == 200:
                        return one
                await CLOCK.sleep(_LOOK)

    async def nodes(self) -> dict[str, pb.Node]:
        async with NavarchClient.remote((await self.leader()).address, token=TOKEN) as client:
            return {node.id: node async for node in client.nodes()}

    async def until(self, holds: Callable[[dict[str, pb.Node]], bool]) -> dict[str, pb.Node]:
        with anyio.fail_after(PATIENCE_S):
            while not holds(found := await self.nodes()):
                await CLOCK.sleep(_LOOK)
        return found

    async def register(self, node: pb.Node) -> None:
        calls = self.calls(await self.leader(), TOKEN)
        answer = await calls.register(pb.RegisterRequest(node_id=node.machine))
        self.tokens[node.id] = answer.token
        await self.calls(await self.leader(), answer.token).heartbeat(pb.HeartbeatRequest(tested=True))

    def calls(self, replica: Replica, token: str) -> AgentServiceClient:
        return connect(replica.address, ids=SystemIds(), token=token).client(AgentServiceClient)


@contextmanager
def replica(name: str, folder: Path, url: str, store: str) -> Generator[Replica]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    home = folder / name
    home.mkdir()
    text = FILE.format(port=port, folder=home / "state", store=store, url=url, image=IMAGE)
    (home / "config.yaml").write_text(text)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "NAVARCH_AUTH_TOKEN": TOKEN}
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "neorion.navarch", "serve", "--config", str(home / "config.yaml")],
            stdout=log,
            stderr=log,
            env=env | KEYS,
        )
    made = Replica(name, port, process)
    try:
        yield made
    finally:
        made.kill()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgres"))])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[str]:
    if request.param == "sqlite":
        yield f"sqlite://{tmp_path}/shared.db"
        return
    with postgres_server() as server:
        yield server.new_schema()


def _bought(url: str) -> list[str]:
    """The state of every machine that was ever bought."""
    client = boto3.client("ec2", endpoint_url=url, region_name="us-west-2")
    groups = client.describe_instances()["Reservations"]
    return sorted(one["State"]["Name"] for group in groups for one in group["Instances"])


async def _two_at_work(fleet: Fleet) -> list[pb.Node]:
    for node in (await fleet.until(lambda found: _states(found) == ["booting"] * 2)).values():
        await fleet.register(node)
    return list((await fleet.until(lambda found: _states(found) == ["active"] * 2)).values())


def _states(nodes: dict[str, pb.Node]) -> list[str]:
    return sorted(node.state for node in nodes.values())


async def test_a_killed_leader_loses_nothing_and_its_replacement_is_finished_once(store: str, tmp_path: Path):
    async with ec2() as rig:
        url = rig.gate.url
        with replica("first", tmp_path, url, store) as first:
            fleet = Fleet([first])
            await fleet.leader()
            with replica("second", tmp_path, url, store) as second:
                fleet.replicas.append(second)
                healthy, sick = await _two_at_work(fleet)
                await _stands_by(fleet, second)

                event = pb.HealthEvent(kind="xid", xid=79, gpu=0)
                report = pb.ReportRequest(boot="b", first=1, events=[event])
                await fleet.calls(first, fleet.tokens[sick.id]).report(report)
                # Its successor is bought and boots: in the middle of a replacement.
                await fleet.until(lambda found: "booting" in _states(found))
                async with NavarchClient.remote(first.address, token=TOKEN) as client:
                    await client.calls.pause_pool(pb.PausePoolRequest(pool="training", why="the last word"))
                first.kill()

                assert await fleet.leader() is second
                await _goes_on(fleet, healthy, sick)
        # The gate to the cloud is served by this very loop.
        assert await to_thread.run_sync(_bought, url) == ["running", "running", "terminated"]


@pytest.mark.needs("postgres")
async def test_a_leader_that_slept_and_was_succeeded_ends_when_it_wakes(tmp_path: Path):
    with postgres_server() as server:
        store = server.new_schema()
        async with ec2() as rig:
            with replica("first", tmp_path, rig.gate.url, store) as first:
                fleet = Fleet([first])
                await fleet.leader()
                with replica("second", tmp_path, rig.gate.url, store) as second:
                    first.process.send_signal(signal.SIGSTOP)
                    fleet.replicas = [second]
                    await fleet.leader()
                    first.process.send_signal(signal.SIGCONT)
                    # Before it has anything to write: until then whoever came to it would hear what was true once.
                    assert await to_thread.run_sync(first.process.wait, 30) != 0
    assert "store.fenced" in (tmp_path / "first" / "log").read_text()


async def _stands_by(fleet: Fleet, second: Replica) -> None:
    """Alive, not ready, and whoever calls is sent to wait rather than away."""
    with anyio.fail_after(PATIENCE_S):
        while (await second.get("/healthz"))[0] != 200:
            await CLOCK.sleep(_LOOK)
    assert (await second.get("/readyz"))[0] == 503
    assert "navarch_leader 0.0" in (await second.get("/metrics"))[1]
    with pytest.raises(Retry) as refused:
        await fleet.calls(second, next(iter(fleet.tokens.values()))).heartbeat(pb.HeartbeatRequest())
    assert refused.value.code == "navarch.standby"


async def _goes_on(fleet: Fleet, healthy: pb.Node, sick: pb.Node) -> None:
    second = await fleet.leader()
    assert "navarch_leader 1.0" in (await second.get("/metrics"))[1]
    async with NavarchClient.remote(second.address, token=TOKEN) as client:
        (pool,) = await client.pools()
        assert "the last word" in pool.paused
        await client.calls.resume_pool(pb.ResumePoolRequest(pool="training"))
    # Tokens of nodes are good with every leader.
    await fleet.calls(second, fleet.tokens[healthy.id]).heartbeat(pb.HeartbeatRequest(tested=True))
    (fresh,) = [node for node in (await fleet.nodes()).values() if node.state == "booting"]
    await fleet.register(fresh)
    found = await fleet.until(lambda nodes: sick.id not in nodes)
    assert {node.id: node.state for node in found.values()} == {healthy.id: "active", fresh.id: "active"}
