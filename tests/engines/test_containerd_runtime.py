"""The promises of a runtime, kept by containers of a real containerd; and what only containers can meet."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath

import pytest

from neorion.iris.adapters.runtimes.container.runner_server import RunnerAddress
from neorion.iris.adapters.runtimes.container.runtime import ContainerRuntime
from neorion.iris.adapters.runtimes.container.settings import EngineSettings, HostMount
from neorion.iris.adapters.runtimes.containerd import ContainerdEngine, CriClient
from neorion.iris.ports import Runtime
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.rpc.grpc_socket import GrpcSocket
from tests.contracts.runtime import IN_PROCESSES, Rig, RuntimeContract
from tests.engines.image_archive import PLACES, TASK_IMAGE
from tests.engines.private_engine import PrivateEngine

pytestmark = [pytest.mark.anyio, pytest.mark.needs("root", "containerd", "runc", "busybox", "catatonit")]

MOUNTS = tuple(HostMount(Path(path), PurePosixPath(path), read_only=True) for path in PLACES)


def settings(engine: PrivateEngine, root: Path, image: str = TASK_IMAGE) -> EngineSettings:
    return EngineSettings(root / "runtime", engine.socket, image, MOUNTS)


@asynccontextmanager
async def opened(settings: EngineSettings) -> AsyncGenerator[Runtime]:
    clock = SystemClock()
    async with GrpcSocket(settings.socket) as channel:
        engine = ContainerdEngine(settings, CriClient(channel, settings.socket), clock)
        await engine.check()
        async with ContainerRuntime(settings.folder, engine, RunnerAddress(), clock, system_rng()) as runtime:
            yield runtime


@pytest.fixture
def rig(containerd: PrivateEngine, tmp_path: Path) -> Rig:
    return Rig(lambda: opened(settings(containerd, tmp_path)), IN_PROCESSES, tmp_path)


class TestContainerd(RuntimeContract):
    """On a containerd of its own."""
