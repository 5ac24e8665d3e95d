"""The promises of a runtime, kept by containers of a real Docker engine; and what only Docker can meet."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from neorion.iris.adapters.runtimes.container.runner_server import RunnerAddress
from neorion.iris.adapters.runtimes.container.runtime import ContainerRuntime
from neorion.iris.adapters.runtimes.container.settings import EngineSettings
from neorion.iris.adapters.runtimes.docker import DockerApi, DockerEngine
from neorion.iris.ports import Runtime
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.http.client import HttpTransport
from tests.contracts.runtime import IN_PROCESSES, Rig, RuntimeContract
from tests.engines.image_archive import TASK_IMAGE
from tests.engines.private_engine import PrivateEngine
from tests.engines.test_containerd_runtime import MOUNTS

pytestmark = [pytest.mark.anyio, pytest.mark.needs("root", "dockerd", "runc", "busybox", "catatonit")]


@asynccontextmanager
async def opened(settings: EngineSettings) -> AsyncGenerator[Runtime]:
    clock = SystemClock()
    transport = HttpTransport(f"unix://{settings.socket}")
    engine = DockerEngine(settings, DockerApi(transport, str(settings.socket)), clock)
    try:
        await engine.check()
        async with ContainerRuntime(settings.folder, engine, RunnerAddress(), clock, system_rng()) as runtime:
            yield runtime
    finally:
        await transport.aclose()


@pytest.fixture
def rig(docker: PrivateEngine, tmp_path: Path) -> Rig:
    settings = EngineSettings(tmp_path / "runtime", docker.socket, TASK_IMAGE, MOUNTS)
    return Rig(lambda: opened(settings), IN_PROCESSES, tmp_path)


class TestDocker(RuntimeContract):
    """On a Docker engine of its own."""
