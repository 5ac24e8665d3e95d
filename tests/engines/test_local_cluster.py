"""A cluster of this machine whose tasks run in containers."""

import os
from pathlib import Path

import anyio
import pytest

from neorion.iris.adapters.cluster_file import ClusterFile
from neorion.iris.adapters.runtimes.container.settings import WORKER_LABEL
from neorion.iris.adapters.runtimes.containerd import CriClient
from neorion.iris.adapters.runtimes.docker import DockerApi
from neorion.iris.app.cluster import cluster
from neorion.iris.client import AsyncIrisClient
from neorion.keel.config import loads
from neorion.keel.http.client import HttpTransport
from neorion.keel.rpc.grpc_socket import GrpcSocket
from tests.engines.image_archive import PLACES, TASK_IMAGE
from tests.engines.private_engine import PrivateEngine
from tests.iris.processes import processes_in

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(240),
    pytest.mark.needs("root", "runc", "busybox", "catatonit", "curl"),
]

_FILE = """
platform: {{ local: {{}} }}
controller: {{ local: {{}} }}
defaults:
  bootstrap:
    runtime: {runtime}
    runtime_socket: {socket}
    task_image: {image}
    task_mounts: [{mounts}]
  autoscaler: {{ evaluation_interval: 200ms, scale_up_delay: 0, scale_down_delay: 10m, startup_grace_period: 10m }}
scale_groups:
  cpu:
    accelerator_type: cpu
    resources: {{ cpu: 2, ram: 4GB }}
    max_slices: 2
    slice_template: {{ local: {{}} }}
"""


def _seen() -> tuple[int, bool]:
    """The processes that a task sees, and whether it finds the shell of its image."""
    return len([name for name in os.listdir("/proc") if name.isdecimal()]), os.path.exists("/bin/busybox")  # noqa: PTH110, PTH208 -- travels by value


async def left(engine: PrivateEngine, runtime: str) -> int:
    """Containers of any worker."""
    if runtime == "containerd":
        async with GrpcSocket(engine.socket) as channel:
            return len(await CriClient(channel, engine.socket).sandboxes({}))
    transport = HttpTransport(f"unix://{engine.socket}")
    try:
        api = DockerApi(transport, str(engine.socket))
        await api.negotiate()
        return len(await api.containers(WORKER_LABEL))
    finally:
        await transport.aclose()


@pytest.mark.parametrize(
    "runtime",
    [
        pytest.param("containerd", marks=pytest.mark.needs("containerd")),
        pytest.param("docker", marks=pytest.mark.needs("dockerd")),
    ],
)
async def test_a_job_runs_in_a_container_and_a_slice_leaves_none(
    request: pytest.FixtureRequest, tmp_path: Path, runtime: str
):
    engine: PrivateEngine = request.getfixturevalue(runtime)
    mounts = ", ".join(f'"{place}:{place}:ro"' for place in PLACES)
    text = _FILE.format(runtime=runtime, socket=engine.socket, image=TASK_IMAGE, mounts=mounts)
    before = await left(engine, runtime)
    async with (
        cluster(loads(text, ClusterFile, {}), tmp_path / "iris", ("127.0.0.1", 0)) as running,
        AsyncIrisClient.remote(running.address, token=running.token) as client,
    ):
        try:
            with anyio.fail_after(120):
                stays = await client.submit(["sh", "-c", "echo ready; exec sleep 1000"], "stays")
                await anext(client.follow(stays))
                processes, in_image = await client.wait(await client.submit(_seen, "seen"))
            assert in_image
            assert processes < 12
            assert await left(engine, runtime) > before
        finally:
            await running.platform.shutdown()
    assert await left(engine, runtime) == before
    assert processes_in(tmp_path / "iris") == []
