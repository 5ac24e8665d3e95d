"""An installation of two controllers on a real API server."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from neorion.drydock.cluster import Cluster
from neorion.iris.adapters.cluster_file import ClusterFile
from neorion.iris.adapters.installation import Installer, manifests, names_of
from neorion.keel.clock import SystemClock
from neorion.keel.config import loads
from neorion.keel.kube.client import Client, connect, read_kubeconfig

pytestmark = [pytest.mark.anyio, pytest.mark.needs("drydock"), pytest.mark.timeout(300)]

FILE = Path(__file__).parents[1] / "iris" / "cluster_files" / "kubernetes.yaml"


@pytest.fixture
async def api(cluster: Cluster) -> AsyncGenerator[Client]:
    async with connect(read_kubeconfig([cluster.kubeconfig]).cluster(), "iris") as client:
        yield client


async def test_an_installation_of_two_controllers_is_what_the_api_server_takes(api: Client):
    text = FILE.read_text().replace("namespace: jobs", "namespace: pair")
    text = text.replace("kubernetes: {}", "kubernetes: { replicas: 2, storage_class: shared }", 1)
    text += "storage: { database: '${IRIS_DATABASE}' }\n"
    file = loads(text, ClusterFile, {"IRIS_DATABASE": "postgresql://db/iris"}, file="cluster.yaml")
    installer = Installer(api, SystemClock(), manifests(file, text), names_of(file))
    applied = [name async for name in installer.apply()]
    assert applied == [name async for name in installer.apply()]
    pair = json.loads(await api.read("/apis/apps/v1/namespaces/pair/deployments/iris-controller"))
    assert (pair["spec"]["replicas"], pair["spec"]["strategy"]["type"]) == (2, "RollingUpdate")
    [container] = pair["spec"]["template"]["spec"]["containers"]
    assert container["command"][-1] == "--standby"
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert container["livenessProbe"]["httpGet"]["path"] == "/health"
    async for _ in installer.remove(purge=True):
        pass
