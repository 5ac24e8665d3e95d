"""The promises of a runtime, kept by containers of a real Docker engine; and what only Docker can meet."""

from dataclasses import replace
from pathlib import Path

import pytest

from neorion.iris.adapters.runtimes.container.settings import EngineName
from neorion.iris.adapters.runtimes.machine_engines import open_engine
from neorion.iris.model import Resources
from neorion.iris.ports import ExitKind, Runtime
from neorion.iris.testing.runtime_waits import ended
from neorion.keel.base import Retry
from neorion.keel.clock import SystemClock
from tests.engines.engine_contract import EngineContract, EngineRig
from tests.engines.private_engine import PrivateEngine

pytestmark = [pytest.mark.anyio, pytest.mark.needs("root", "dockerd", "runc", "busybox", "catatonit", "curl")]


@pytest.fixture
def rig(docker: PrivateEngine, tmp_path: Path) -> EngineRig:
    return EngineRig.of(EngineName.DOCKER, docker, tmp_path)


class TestDocker(EngineContract):
    """On a Docker engine of its own."""

    async def test_an_engine_without_gpus_says_so(self, rig: EngineRig, runtime: Runtime):
        order = replace(
            rig.command(rig.words.exits(0)),
            resources=Resources(gpus=1),
            variables=(("CUDA_VISIBLE_DEVICES", "0"),),
        )
        await runtime.start(order)
        end = await ended(runtime, order.attempt)
        assert end.kind is ExitKind.NOT_STARTED
        assert "could not select device driver" in end.message

    async def test_a_socket_without_docker_is_named(self, rig: EngineRig):
        nowhere = replace(rig.settings, folder=rig.root / "other", socket=rig.root / "nowhere")
        with pytest.raises(Retry, match="Docker does not answer at"):
            async with open_engine(nowhere, SystemClock()):
                pass
