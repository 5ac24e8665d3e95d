"""Another process binds the port of a server that was killed. It gets no token, and no worker or agent obeys it."""

import os
import ssl
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from neorion.iris.client import AsyncIrisClient
from neorion.iris.client.endpoint import resolve_endpoint
from neorion.iris.model import AttemptId, wire
from neorion.iris.model.gen import iris_pb
from neorion.iris.model.gen.iris_connect import (
    JobService,
    JobServiceASGIApplication,
    WorkerService,
    WorkerServiceASGIApplication,
)
from neorion.iris.model.spec import Command
from neorion.keel.base import Duration, Error
from neorion.keel.clock import SystemClock, SystemIds
from neorion.keel.rpc import KNOWN, AsgiApp, Principal, RpcService, pin, self_signed, serve
from neorion.navarch.client import NavarchClient
from neorion.navarch.model.gen.navarch_connect import (
    AgentService,
    AgentServiceASGIApplication,
    FleetService,
    FleetServiceASGIApplication,
)
from neorion.navarch.model.tokens import token_file
from tests.iris.processes import Cluster, Program, kill, processes_in

pytestmark = [pytest.mark.anyio, pytest.mark.attack("false-server"), pytest.mark.timeout(240)]

CLOCK, IDS = SystemClock(), SystemIds()
_LOOK = Duration.of(ms=50)
PATIENCE_S = 90
# A program in which the check of the pin is off.
UNCHECKED = """
import ssl, sys
from neorion.keel.rpc import pin
pin.PinnedConnection.do_handshake = ssl.SSLObject.do_handshake
from neorion.{0} import main
sys.exit(main({1}))
"""
FLEET = """
server: { address: "127.0.0.1:0" }
providers: { fake: { type: fake } }
pools: [{ name: training, provider: fake, instance_type: p5.48xlarge, min_nodes: 0, max_nodes: 1 }]
"""


class FalseController(WorkerService):
    """Orders every worker to make a file."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    async def join(self, request: iris_pb.JoinRequest, ctx: object) -> iris_pb.JoinResponse:
        del request, ctx
        return iris_pb.JoinResponse(worker="worker-x", renew_every_ms=1000, lease_ms=60_000, token="t")

    async def orders(self, request: iris_pb.OrdersRequest, ctx: object) -> AsyncIterator[iris_pb.OrderBatch]:
        del request, ctx
        entry = wire.entry_message(Command(("touch", str(self._mark))))
        start = iris_pb.Start(attempt=IDS.new(AttemptId), entry=entry, environment=iris_pb.Environment())
        yield iris_pb.OrderBatch(start=[start])
        await anyio.sleep_forever()


class FalseJobs(JobService):
    """Answers nothing."""


class FalseAgents(AgentService):
    """Answers nothing."""


class FalseFleet(FleetService):
    """Answers nothing."""


@dataclass
class FalseServer:
    """Lets everyone in and keeps their tokens."""

    folder: Path
    tokens: list[str] = field(default_factory=list[str])

    @property
    def mark(self) -> Path:
        return self.folder / "obeyed"

    async def authenticate(self, token: str) -> Principal:
        self.tokens.append(token)
        return Principal("somebody")

    def app(self) -> AsgiApp:
        services = [
            RpcService(application, service, {method.name: {KNOWN} for method in service.desc().methods})
            for application, service in (
                (WorkerServiceASGIApplication, FalseController(self.mark)),
                (JobServiceASGIApplication, FalseJobs()),
                (AgentServiceASGIApplication, FalseAgents()),
                (FleetServiceASGIApplication, FalseFleet()),
            )
        ]
        return AsgiApp(services, ids=IDS, authenticator=self)


@asynccontextmanager
async def false_server(folder: Path, port: int, *, tls: bool) -> AsyncGenerator[FalseServer]:
    server = FalseServer(folder)
    async with serve(server.app(), port=port, tls=self_signed(folder / "false") if tls else None):
        yield server


async def until_written(file: Path, text: str) -> None:
    with anyio.fail_after(PATIENCE_S):
        while text not in (file.read_text() if file.exists() else ""):
            await CLOCK.sleep(_LOOK)


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


@contextmanager
def dead_controller(folder: Path) -> Generator[Cluster]:
    """A controller that was killed. Its token is still where clients of this machine look for it."""
    cluster = Cluster(folder, workers=0)
    cluster.start_controller()
    cluster.controller.kill()
    worker = folder / "worker"
    try:
        yield cluster
    finally:
        for pid in processes_in(worker):
            kill(pid)


@pytest.mark.parametrize(("tls", "says"), [(True, "is not the one"), (False, "cannot be reached")])
async def test_a_worker_gives_a_false_controller_nothing(tmp_path: Path, *, tls: bool, says: str) -> None:
    with dead_controller(tmp_path) as cluster:
        async with false_server(tmp_path, port_of(cluster.url), tls=tls) as server:
            worker = Program(tmp_path / "worker", *cluster.worker_args(tmp_path / "worker"))
            cluster.start_worker(worker)
            try:
                await until_written(worker.folder / "stderr", says)
                assert server.tokens == []
                assert not server.mark.exists()
            finally:
                await to_thread.run_sync(worker.kill)


async def test_a_worker_without_the_check_obeys_it(tmp_path: Path) -> None:
    with dead_controller(tmp_path) as cluster:
        async with false_server(tmp_path, port_of(cluster.url), tls=True) as server:
            folder = tmp_path / "worker"
            program = ("-c", UNCHECKED.format("iris.app.main", "sys.argv[1:]"))
            worker = Program(folder, *cluster.worker_args(folder), program=program)
            cluster.start_worker(worker)
            try:
                with anyio.fail_after(PATIENCE_S):
                    while not server.mark.exists():
                        await CLOCK.sleep(_LOOK)
                assert server.tokens[0] in (cluster.controller.folder / "worker.token").read_text()
            finally:
                await to_thread.run_sync(worker.kill)


async def test_a_client_gives_a_false_controller_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dead_controller(tmp_path) as cluster:
        port = port_of(cluster.url)
        # The address of every example, with the token that the controller has left here.
        place = resolve_endpoint(f"http://localhost:{port}", None, "", os.environ)
        for tls in (True, False):
            async with false_server(tmp_path, port, tls=tls) as server, AsyncIrisClient.at(place) as client:
                with pytest.raises(Error, match="is not the one" if tls else "cannot be reached"):
                    await client.jobs()
                assert server.tokens == []
        monkeypatch.setattr(pin.PinnedConnection, "do_handshake", ssl.SSLObject.do_handshake)
        async with false_server(tmp_path, port, tls=True) as server, AsyncIrisClient.at(place) as client:
            with pytest.raises(Error, match="Not implemented"):
                await client.jobs()
            assert server.tokens[0] in (cluster.controller.folder / "admin.token").read_text()


async def test_a_token_without_a_pin_is_not_sent_over_plain_http(tmp_path: Path) -> None:
    async with false_server(tmp_path, 0, tls=False):
        with pytest.raises(Error, match="cannot prove who it is") as refused:
            AsyncIrisClient.remote("http://localhost:1", token="a-token")
        assert refused.value.code == "rpc.unpinned"


@pytest.mark.parametrize(("checked", "says"), [(True, "is not the one"), (False, "Not implemented")])
async def test_an_agent_and_an_operator_give_a_false_control_plane_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, checked: bool, says: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    address = await to_thread.run_sync(killed_control_plane, tmp_path)
    if not checked:
        monkeypatch.setattr(pin.PinnedConnection, "do_handshake", ssl.SSLObject.do_handshake)
    left = Path(token_file(os.environ, port_of(address)))
    program = ("-m", "neorion.navarch") if checked else ("-c", UNCHECKED.format("navarch.cli", ""))
    words = ("agent", "--server", address, "--node-id", "one", "--state", str(tmp_path / "agent"))
    async with false_server(tmp_path, port_of(address), tls=True) as server:
        with running([*program, *words], tmp_path / "said", left.read_text()):
            await until_written(tmp_path / "said", says)
        async with NavarchClient.remote(address.replace("https:", "http:")) as client:
            with pytest.raises(Error, match=says):
                await client.pools()
        assert bool(server.tokens) is not checked


@contextmanager
def running(program: list[str], said: Path, token: str) -> Generator[None]:
    with said.open("wb") as errors:
        env = os.environ | {"NAVARCH_AUTH_TOKEN": token}
        process = subprocess.Popen([sys.executable, *program], env=env, stderr=errors)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def killed_control_plane(folder: Path) -> str:
    (folder / "config.yaml").write_text(FLEET)
    command = [sys.executable, "-m", "neorion.navarch", "serve", "--config", str(folder / "config.yaml")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        process.kill()
    return address
