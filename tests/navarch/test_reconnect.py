"""A killed control plane comes back to all of its agents at once."""

import asyncio
import json
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from neorion.keel.clock import SystemClock
from neorion.navarch.client import NavarchClient
from neorion.navarch.model.gen import navarch_pb as pb

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]

AGENTS = 1_000
SERVED_S_MAX = 30.0
ROOT = Path(__file__).parents[2]
CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class Life:
    """One process of the control plane."""

    process: subprocess.Popen[str]
    port: int
    tokens: list[str]


@contextmanager
def life(folder: Path, port: int = 0) -> Generator[Life]:
    command = [sys.executable, "-m", "tests.navarch.restartable", str(folder), str(port), str(AGENTS)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        yield Life(process, said["port"], said["tokens"])
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def files() -> Generator[None]:
    """An agent is a connection: this process holds one end of each."""
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4 * AGENTS), most))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (least, most))


def heartbeat(token: str) -> bytes:
    body = pb.HeartbeatRequest(tested=True).to_binary()
    lines = [
        "POST /neorion.navarch.v1.AgentService/Heartbeat HTTP/1.1",
        "host: 127.0.0.1",
        "content-type: application/proto",
        "connect-protocol-version: 1",
        f"authorization: Bearer {token}",
        f"content-length: {len(body)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Agent:
    """An agent that connects again at once, without a pause, until its heartbeat is taken."""

    def __init__(self, token: str) -> None:
        self._beat = heartbeat(token)
        self._writer: asyncio.StreamWriter | None = None
        self.answers: Counter[str] = Counter()

    async def beat(self, port: int) -> None:
        status = ""
        while status != "200":
            await self.close()
            with suppress(OSError, EOFError):
                reader, self._writer = await asyncio.open_connection("127.0.0.1", port)
                self._writer.write(self._beat)
                status = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
                self.answers[status] += 1
            await anyio.lowlevel.checkpoint()

    async def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()
            self._writer = None


async def all_beat(agents: list[Agent], port: int) -> None:
    async with asyncio.TaskGroup() as group:
        for one in agents:
            group.create_task(one.beat(port))


@pytest.mark.fault(40)
async def test_a_thousand_agents_that_connect_again_at_once_are_served(tmp_path: Path, files: None):
    del files
    with life(tmp_path) as first:
        agents = [Agent(token) for token in first.tokens]
        await all_beat(agents, first.port)
    began = CLOCK.monotonic()
    with life(tmp_path, first.port) as second:
        # Their tokens are those of the first life.
        await all_beat(agents, second.port)
        took = CLOCK.monotonic() - began
        async with NavarchClient.remote(f"http://127.0.0.1:{second.port}", token="operator-token") as client:
            nodes = [node async for node in client.nodes()]
    for one in agents:
        await one.close()
    assert took < SERVED_S_MAX
    assert Counter(node.state for node in nodes) == {"active": AGENTS}
    assert sum((one.answers for one in agents), Counter[str]()) == {"200": 2 * AGENTS}
