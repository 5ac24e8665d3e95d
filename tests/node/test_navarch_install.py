"""Navarch as its manifests install it, on real nodes: agents on machines that were bought, a fault in one, and a replacement.

The cloud is a real EC2 endpoint; whenever a machine is bought there, a real node joins the cluster under the machine's id. The
driver's library is a stand-in with faults to order, reached through NVIDIA's own binding in the agent's container.
"""

import hashlib
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import boto3  # pyright: ignore[reportMissingTypeStubs] -- the vendor ships no types
import pytest
import yaml
from anyio import to_thread
from moto.server import ThreadedMotoServer

from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.images import BUSYBOX, BuildRequest, ImageName, ImageStore, Registry, build, provide
from neorion.drydock.node import NodeSpec, add, nodes, remove
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock
from tests.capacity.clouds.ec2 import IMAGE, KEYS
from tests.node.pods import NEEDS, Kubectl, pod

# The first build of the image fetches its packages.
pytestmark = [
    pytest.mark.anyio,
    NEEDS,
    pytest.mark.needs("drydock", "mmdebstrap", "gcc"),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

ROOT = Path(__file__).parents[2]
# Of this checkout: two of them may be tested at the same time.
NAME = f"navarch-{hashlib.sha256(str(Path(__file__).parent).encode()).hexdigest()[:8]}"
REGION = "us-west-2"
GPU_NODE = NodeSpec(labels={"nvidia.com/gpu.present": "true"})
PATIENCE_S = 300
CLOCK = SystemClock()
# Neither the cloud nor a pod's program sends events: they are looked at.
_LOOK = Duration.of(ms=500)
CONFIG = """
server:
  address: 0.0.0.0:50051
  tls: none
  heartbeat_interval: 2s
  heartbeat_timeout: 2m
  state_dir: /var/lib/navarch
  kubernetes: {{}}
providers:
  aws: {{ region: {region}, api_url: "{url}" }}
pools:
  - name: k8s-gpu-workers
    provider: aws
    instance_type: p5.48xlarge
    image: {image}
    surge: 1
    scaling: {{ min_nodes: 1, max_nodes: 2 }}
    health: {{ unhealthy_threshold: 2, auto_replace: true }}
"""


@dataclass(frozen=True, slots=True)
class Cloud:
    """EC2 as its machines' nodes see it: who is bought joins the cluster, who is terminated leaves it."""

    cluster: Cluster
    url: str
    folder: Path

    async def machines(self) -> dict[str, str]:
        """The state of every machine that was ever bought."""
        return await to_thread.run_sync(self._machines)

    def _machines(self) -> dict[str, str]:
        keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
        client = boto3.client("ec2", endpoint_url=self.url, region_name=REGION, **keys)
        groups = client.describe_instances()["Reservations"]
        return {one["InstanceId"]: one["State"]["Name"] for group in groups for one in group["Instances"]}

    async def play(self) -> None:
        while True:
            there = {node.name for node in nodes(self.cluster.layout)}
            for machine, state in (await self.machines()).items():
                if state == "running" and machine not in there:
                    self._fit(machine)
                    await add(self.cluster, machine, GPU_NODE)
                elif state == "terminated" and machine in there:
                    await remove(self.cluster, machine)
            await CLOCK.sleep(_LOOK)

    def _fit(self, machine: str) -> None:
        """Eight healthy GPUs."""
        home = self.folder / "nvml" / machine
        home.mkdir(parents=True)
        (home / "state").write_text("gpus 8\n")
        os.mkfifo(home / "events")

    def strike(self, machine: str, xid: int) -> None:
        with (self.folder / "nvml" / machine / "events").open("w") as events:
            events.write(f"0 {xid}\n")


@pytest.fixture
async def cluster() -> AsyncGenerator[Cluster]:
    yard = ClusterManager.of()
    try:
        made = await yard.up(NAME, ClusterOptions(nodes=1))
        await _give_images(made)
        yield made
    finally:
        await yard.down(NAME)


async def _give_images(cluster: Cluster) -> None:
    store, registry = ImageStore.of(cluster.shelf), Registry.of(cluster.layout).address
    await provide(store, [BUSYBOX.name])
    names = [BUSYBOX.name]
    for name in ("control-plane", "node"):
        recipe = ROOT / f"infra/docker/navarch-{name}/Dockerfile"
        names.append(await build(store, BuildRequest(ROOT, ImageName.parse(f"navarch/{name}"), recipe)))
    for name in names:
        await store.push(name, registry)


@asynccontextmanager
async def cloud(cluster: Cluster, folder: Path) -> AsyncGenerator[Cloud]:
    library = folder / "nvml" / "libnvidia-ml.so.1"
    library.parent.mkdir()
    source = ROOT / "tests/navarch/nvml/stand_in.c"
    await anyio.run_process(["gcc", "-shared", "-fPIC", "-o", library, source])
    server = ThreadedMotoServer(str(cluster.layout.addresses.host), 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    made = Cloud(cluster, f"http://{host}:{port}", folder)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(made.play)
            yield made
            group.cancel_scope.cancel()
    finally:
        server.stop()


def manifests(made: Cloud) -> list[dict[str, Any]]:
    """Those of the project, with another cloud, the stand-in's library, and agents that share one machine."""
    folder = ROOT / "infra" / "navarch"
    names = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    found = [one for name in names for one in yaml.safe_load_all((folder / name).read_text())]
    for one in found:
        match one["kind"]:
            case "ConfigMap":
                one["data"]["config.yaml"] = CONFIG.format(region=REGION, url=made.url, image=IMAGE)
            case "Deployment":
                (container,) = one["spec"]["template"]["spec"]["containers"]
                container["env"] += [{"name": key, "value": value} for key, value in KEYS.items()]
            case "DaemonSet":
                _equip(one["spec"]["template"]["spec"], made.folder)
            case _:
                pass
    return [one for one in found if one["kind"] != "ServiceMonitor"]


def _equip(spec: dict[str, Any], folder: Path) -> None:
    (agent,) = spec["containers"]
    agent["env"] += [
        {"name": "LD_LIBRARY_PATH", "value": "/nvml"},
        {"name": "NVML_STAND_IN", "value": "/nvml/$(NODE_NAME)"},
    ]
    agent["volumeMounts"].append({"name": "nvml", "mountPath": "/nvml"})
    for mount in agent["volumeMounts"]:
        if mount["name"] == "state":
            mount["subPathExpr"] = "$(NODE_NAME)"
    for volume in spec["volumes"]:
        if volume["name"] == "state":
            volume["hostPath"]["path"] = str(folder / "agents")
    spec["volumes"].append({"name": "nvml", "hostPath": {"path": str(folder / "nvml")}})


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(PATIENCE_S):
        while not await holds():
            await CLOCK.sleep(_LOOK)


async def test_the_manifests_run_and_a_machine_with_a_fallen_gpu_is_replaced_under_its_work(
    cluster: Cluster, tmp_path: Path
):
    kubectl = Kubectl(cluster, "navarch")
    async with cloud(cluster, tmp_path) as made:
        (tmp_path / "agents").mkdir()
        await kubectl.apply(*manifests(made))
        await kubectl(
            "wait", "deployment/navarch-control-plane", "--for=condition=Available", "--timeout=240s"
        )

        async def told() -> list[dict[str, Any]]:
            words = ["node", "history", "pool/k8s-gpu-workers", "--server", "127.0.0.1:50051", "-o", "json"]
            inside = ["exec", "deployment/navarch-control-plane", "--", "python", "-m", "neorion.navarch"]
            return json.loads(await kubectl(*inside, *words))

        async def happened(event: str, times: int) -> bool:
            return sum(line["event"] == event for line in await told()) >= times

        await until(lambda: happened("node.active", 1))
        (first,) = await made.machines()
        work = Kubectl(cluster, "default")
        await work.apply(_work())
        await work("rollout", "status", "deployment/work", "--timeout=120s")
        assert await _places(work) == [first]

        made.strike(first, 79)
        await until(lambda: happened("node.terminated", 1))
        events = [line["event"] for line in await told()]
        order = ["health.unhealthy", "node.cordoned", "node.ordered", "node.active", "node.draining"]
        order += ["node.drained", "node.terminating", "node.terminated"]
        after = events[events.index("health.unhealthy") :]
        assert [event for event in after if event in order] == order

        machines = await made.machines()
        (second,) = machines.keys() - {first}
        assert machines == {first: "terminated", second: "running"}
        names = {one["metadata"]["name"] for one in (await work.get("nodes"))["items"]}
        assert (first in names, second in names) == (False, True)
        await work("rollout", "status", "deployment/work", "--timeout=120s")
        assert await _places(work) == [second]
        healthy = (await work.get("node", second))["status"]["conditions"]
        assert ("NavarchGpuHealthy", "True") in {(one["type"], one["status"]) for one in healthy}


def _work() -> dict[str, Any]:
    """One pod at a time that wants a node of the pool."""
    one = pod("work", "exec sleep 100000", nodeSelector={"navarch.dev/pool": "k8s-gpu-workers"})
    template = {"metadata": one["metadata"], "spec": one["spec"]}
    selector = {"matchLabels": one["metadata"]["labels"]}
    spec = {"replicas": 1, "selector": selector, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "work"}, "spec": spec}


async def _places(kubectl: Kubectl) -> list[str]:
    """The nodes of its pods that are not on their way out."""
    pods = (await kubectl.get("pods", "--selector=app=work"))["items"]
    return [one["spec"]["nodeName"] for one in pods if "deletionTimestamp" not in one["metadata"]]
