"""The promises of a runtime, kept by containers of a real containerd; and what only containerd can meet."""

from dataclasses import replace
from pathlib import Path

import pytest

from neorion.iris.adapters.runtimes.container.settings import EngineName
from neorion.iris.adapters.runtimes.containerd import CriClient
from neorion.iris.adapters.runtimes.containerd.gen.cri_pb import (
    LinuxPodSandboxConfig,
    LinuxSandboxSecurityContext,
    NamespaceMode,
    NamespaceOption,
    PodSandboxConfig,
    PodSandboxMetadata,
)
from neorion.iris.adapters.runtimes.machine_engines import open_engine
from neorion.iris.model import Resources
from neorion.iris.ports import Runtime
from neorion.iris.testing.runtime_waits import ended
from neorion.keel.base import Invalid, Retry
from neorion.keel.clock import SystemClock
from neorion.keel.rpc.grpc_socket import GrpcSocket
from tests.contracts.runtime import log_of
from tests.engines.engine_contract import EngineContract, EngineRig
from tests.engines.private_engine import PrivateEngine

pytestmark = [pytest.mark.anyio, pytest.mark.needs("root", "containerd", "runc", "busybox", "catatonit")]


@pytest.fixture
def rig(containerd: PrivateEngine, tmp_path: Path) -> EngineRig:
    return EngineRig.of(EngineName.CONTAINERD, containerd, tmp_path)


class TestContainerd(EngineContract):
    """On a containerd of its own."""

    async def test_gpus_come_by_the_handler_of_nvidia(self, rig: EngineRig, runtime: Runtime):
        """The handler of this containerd is runc: it shows what NVIDIA's would be told."""
        script = "tr '\\0' '\\n' </proc/1/environ | grep NVIDIA; df /dev/shm | tail -1"
        with_gpus = replace(
            rig.shell(script), resources=Resources(gpus=2), variables=(("CUDA_VISIBLE_DEVICES", "1,3"),)
        )
        without = rig.shell(script)
        for order in (with_gpus, without):
            await runtime.start(order)
            await ended(runtime, order.attempt)
        first, second = (log_of(runtime, order).splitlines() for order in (with_gpus, without))
        assert (first[0], second[0]) == ("NVIDIA_VISIBLE_DEVICES=1,3", "NVIDIA_VISIBLE_DEVICES=void")
        # The second has the 64 MiB of its sandbox.
        assert int(first[1].split()[1]) > int(second[1].split()[1]) == 64 << 10

    async def test_the_containerd_of_a_kubelet_is_refused(self, rig: EngineRig):
        host = NamespaceOption(network=NamespaceMode.NODE)
        pod = PodSandboxConfig(
            metadata=PodSandboxMetadata(name="pod", uid="uid", namespace="default"),
            labels={"io.kubernetes.pod.uid": "uid"},
            linux=LinuxPodSandboxConfig(security_context=LinuxSandboxSecurityContext(namespace_options=host)),
        )
        async with GrpcSocket(rig.settings.socket) as channel:
            client = CriClient(channel, rig.settings.socket)
            made = await client.run_sandbox(pod, "")
            try:
                with pytest.raises(Invalid, match="belongs to a kubelet"):
                    async with open_engine(rig.settings, SystemClock()):
                        pass
            finally:
                await client.remove_sandbox(made)

    async def test_a_socket_without_containerd_is_named(self, rig: EngineRig):
        nowhere = replace(rig.settings, folder=rig.root / "other", socket=rig.root / "nowhere")
        with pytest.raises(Retry, match="containerd does not answer at"):
            async with open_engine(nowhere, SystemClock()):
                pass
