"""Iris on CoreWeave as its operator installs it: the manifests on real nodes, a job from outside, its machine bought and given back.

The machines of NodePools are real nodes of drydock. With IRIS_COREWEAVE_URL the same job runs against a real installation:

    IRIS_COREWEAVE_URL=http://localhost:10000 IRIS_TOKEN=… pytest tests/node/test_iris_coreweave.py -m coreweave
"""

import hashlib
import os
import re
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from anyio.streams.text import TextReceiveStream

from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.coreweave import MACHINES, NodeBacking
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock
from tests.node.iris_images import push_images
from tests.node.pods import NEEDS, Kubectl

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "infra" / "coreweave" / "k8s"
CONFIG = ROOT / "tests" / "iris" / "cluster_files" / "coreweave-test.yaml"
# Of this checkout: two of them may be tested at the same time.
NAME = f"iris-{hashlib.sha256(str(Path(__file__).parent).encode()).hexdigest()[:8]}"
INSTANCE = "cd-gp-i64-erapids"
CLOCK = SystemClock()
LOOK_EVERY = Duration.of(ms=500)
PATIENCE_S = 300
# Step 8 of the operator guide.
SCRIPT = """
from iris.client import IrisClient
client = IrisClient.remote('{url}')
job = client.submit(lambda: 42, 'smoke-test')
result = client.wait(job, timeout=2400)
print(f'Job result: {{result}}')
"""


@pytest.fixture
async def cluster() -> AsyncGenerator[Cluster]:
    yard = ClusterManager.of()
    try:
        made = await yard.up(NAME, ClusterOptions(networked=True, coreweave=True))
        await push_images(made)
        yield made
    finally:
        await yard.down(NAME)


def cluster_file() -> str:
    """The documents' own, with a machine that exists, and idle slices given back in seconds."""
    file = yaml.safe_load(CONFIG.read_text().replace("<cpu-instance>", INSTANCE))
    file["platform"]["coreweave"]["namespace"] = "iris"
    file["defaults"]["autoscaler"] |= {
        "evaluation_interval": "500ms",
        "scale_up_delay": "0s",
        "scale_down_delay": "1s",
        "startup_grace_period": "1s",
    }
    pool = file["scale_groups"]["cpu_test"]["slice_template"]["coreweave"]
    pool["annotations"] = {MACHINES: NodeBacking.REAL.value}
    return yaml.safe_dump(file)


def manifests() -> list[dict[str, Any]]:
    """Those of the project, with the test's cluster file, and a real machine for the controller."""
    names = yaml.safe_load((FOLDER / "Kustomization").read_text())["resources"]
    found = [one for name in names for one in yaml.safe_load_all((FOLDER / name).read_text())]
    for one in found:
        if one["kind"] == "ConfigMap":
            one["data"]["config.yaml"] = cluster_file()
        if one["kind"] == "NodePool":
            one["metadata"]["annotations"] = {MACHINES: NodeBacking.REAL.value}
    return found


@asynccontextmanager
async def forwarded(kubectl: Kubectl) -> AsyncGenerator[str]:
    """`kubectl port-forward`, as in step 7, to any port that is free."""
    command = [*kubectl.command, "port-forward", "svc/iris-controller-svc", ":10000"]
    async with await anyio.open_process(command) as process:
        assert process.stdout is not None
        said = ""
        with anyio.fail_after(60):
            async for text in TextReceiveStream(process.stdout):
                said += text
                if found := re.search(r"127\.0\.0\.1:(\d+)", said):
                    yield f"http://localhost:{found[1]}"
                    break
        process.terminate()


async def smoke(url: str, env: Mapping[str, str]) -> str:
    done = await anyio.run_process([sys.executable, "-c", SCRIPT.format(url=url)], env=env, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


@NEEDS
@pytest.mark.needs("drydock", "mmdebstrap")
@pytest.mark.timeout(900)
async def test_a_job_from_outside_buys_its_machine_returns_its_value_and_the_machine_is_given_back(
    cluster: Cluster,
):
    kubectl = Kubectl(cluster, "iris")
    await kubectl.apply(*manifests())
    # What an operator applies, as it is: the server finds nothing wrong with any of it.
    await kubectl("apply", "--dry-run=server", "-f", str(FOLDER))
    await kubectl("wait", "deployment/iris-controller", "--for=condition=Available", "--timeout=240s")
    (controller,) = (await kubectl.get("pods", "--selector=app=iris-controller"))["items"]
    assert controller["spec"]["nodeName"] == "iris-controller-pool-0"
    assert await _bought(kubectl) == []

    inside = ["exec", "deployment/iris-controller", "--"]
    token = await kubectl(*inside, "cat", "/var/lib/iris/.local/state/iris/admin.token")
    seen: dict[str, dict[str, Any]] = {}
    async with forwarded(kubectl) as url, anyio.create_task_group() as group:
        group.start_soon(_look, kubectl, seen)
        with anyio.fail_after(PATIENCE_S):
            said = await smoke(url, {**os.environ, "IRIS_TOKEN": token.strip()})
        assert said == "Job result: 42"
        with anyio.fail_after(PATIENCE_S):
            while await _bought(kubectl) or await _workers(kubectl):
                await CLOCK.sleep(LOOK_EVERY)
        group.cancel_scope.cancel()

    pool, pod, node = seen["pool"], seen["pod"], seen["node"]
    name = pool["metadata"]["name"]
    assert re.fullmatch(r"iris-cpu-test-[0-9a-z]{26}", name)
    assert (pool["spec"]["targetNodes"], pool["spec"]["autoscaling"]) == (1, False)
    assert pod["metadata"]["name"] == f"iris-worker-{name}"
    assert pod["spec"]["nodeName"] == node["metadata"]["name"]
    for thing in (pool, pod, node):
        labels = thing["metadata"]["labels"]
        assert (labels["iris-managed"], labels["iris-scale-group"]) == ("true", "cpu_test")
        assert labels["iris-slice-id"] == pool["metadata"]["labels"]["iris-slice-id"]
    (container,) = pod["spec"]["containers"]
    assert "--controller=iris-controller-svc.iris.svc.cluster.local:10000" in container["command"]
    assert not [
        one for one in (await kubectl.get("nodes"))["items"] if "iris-slice-id" in one["metadata"]["labels"]
    ]
    secrets = (await kubectl.get("secrets", "--selector=iris-managed=true"))["items"]
    assert secrets == []


async def _look(kubectl: Kubectl, seen: dict[str, dict[str, Any]]) -> None:
    """What the API shows of the slice while it is there."""
    while True:
        for pool in await _bought(kubectl):
            seen["pool"] = pool
        for pod in await _workers(kubectl):
            if pod["spec"].get("nodeName"):
                seen["pod"] = pod
        for node in (await kubectl.get("nodes", "--selector=iris-slice-id"))["items"]:
            seen["node"] = node
        await CLOCK.sleep(LOOK_EVERY)


async def _bought(kubectl: Kubectl) -> list[dict[str, Any]]:
    return (await kubectl.get("nodepools", "--selector=iris-managed=true"))["items"]


async def _workers(kubectl: Kubectl) -> list[dict[str, Any]]:
    return (await kubectl.get("pods", "--selector=iris-managed=true"))["items"]


@pytest.mark.coreweave
@pytest.mark.timeout(2500)
@pytest.mark.needs("coreweave")
async def test_a_real_installation_returns_the_value_of_a_job():
    assert await smoke(os.environ["IRIS_COREWEAVE_URL"], dict(os.environ)) == "Job result: 42"
