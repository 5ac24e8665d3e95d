"""The promises of a runtime, kept by Pods on real nodes; and what only Pods can meet."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from neorion.drydock.cluster import Cluster
from neorion.iris.adapters.runtimes.container.runner_server import RunnerAddress
from neorion.iris.adapters.runtimes.container.runtime import ContainerRuntime
from neorion.iris.adapters.runtimes.kubernetes import PodEngine, PodSettings
from neorion.iris.ports import Runtime
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube.client import connect, find_cluster
from tests.contracts.runtime import IN_PROCESSES, Rig, RuntimeContract
from tests.node.pods import MINUTES, NEEDS, Kubectl

pytestmark = [pytest.mark.anyio, NEEDS, MINUTES]

ROOT = Path(__file__).parents[2]
# The Python of this test with its libraries, in place of an image that takes minutes to build.
_PLACES = {
    "/usr": "/usr",
    "/lib": "/usr/lib",
    "/lib64": "/usr/lib64",
    str(ROOT): str(ROOT),
    sys.base_prefix: sys.base_prefix,
}


def settings(namespace: str, **more: Any) -> PodSettings:
    places = list(enumerate(_PLACES.items()))
    return PodSettings(
        namespace=namespace,
        worker=namespace,
        image="busybox",
        python=sys.executable,
        volumes=tuple({"name": f"host-{i}", "hostPath": {"path": there}} for i, (_, there) in places),
        mounts=tuple({"name": f"host-{i}", "mountPath": here, "readOnly": True} for i, (here, _) in places),
        **more,
    )


@asynccontextmanager
async def opened(cluster: Cluster, root: Path, pods: PodSettings) -> AsyncGenerator[Runtime]:
    clock, rng = SystemClock(), system_rng()
    host = str(cluster.layout.addresses.host)
    async with (
        connect(find_cluster(cluster.kubeconfig), "iris", clock, rng) as api,
        ContainerRuntime(
            root, PodEngine(pods, api, clock, rng), RunnerAddress(host, host), clock, rng
        ) as runtime,
    ):
        yield runtime


@pytest.fixture
def rig(node_cluster: Cluster, kubectl: Kubectl, tmp_path: Path) -> Rig:
    return Rig(
        lambda: opened(node_cluster, tmp_path / "runtime", settings(kubectl.namespace)),
        IN_PROCESSES,
        tmp_path,
    )


class TestPods(RuntimeContract):
    """On a cluster with real kubelets."""
