"""Slices on a real API server with simulated nodes: NodePools that fail, and what a waiting job says of it."""

import json
import os
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from neorion.capacity.coreweave import NODE_POOL
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.coreweave import FAULT
from neorion.drydock.simulated import SimulatedNodeGroup
from neorion.iris.adapters.cluster_file import ClusterFile, kubernetes_settings, scale_groups
from neorion.iris.adapters.installation import Installer, manifests, names_of
from neorion.iris.adapters.platforms.kubernetes import KubernetesPlatform
from neorion.iris.app.cluster import cluster as run_iris
from neorion.iris.cli.exit_status import JobExplanation, why
from neorion.iris.client import AsyncIrisClient
from neorion.iris.model import SliceId, SliceState
from neorion.iris.ports import SliceRequest
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.config import loads
from neorion.keel.kube import ALL, Kind, KubeObject, MergePatch, Selector
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.core import CLAIM, DEPLOYMENT, NAMESPACE, NODE, POD, SECRET
from tests.contracts.test_platform import until, until_gone

pytestmark = [pytest.mark.anyio, pytest.mark.needs("drydock"), pytest.mark.timeout(480)]

ROOM = "iris"
# Of the cluster file that an installation is made of.
OTHER_ROOM = "jobs"
FILES = Path(__file__).parents[1] / "iris" / "cluster_files"
MINE = Selector(labels="iris-managed=true")
PATIENCE_S = 120
LOOK_EVERY = Duration.of(ms=100)
CLOCK = SystemClock()
FILE = """
platform:
  {platform}: {{ {region} namespace: iris, kubeconfig_path: {kubeconfig} }}
controller: {{ {platform}: {{}} }}
storage: {{ state_dir: /nowhere }}
defaults:
  bootstrap: {{ docker_image: "worker:1" }}
  timeouts: {{ boot_timeout: {boot}, init_timeout: 1s }}
  autoscaler: {{ evaluation_interval: 200ms, scale_up_delay: 0 }}
scale_groups:
  h100_8x:
    accelerator_type: gpu
    accelerator_variant: H100
    num_vms: 2
    resources: {{ cpu: 8, ram: 64Gi, gpu_count: 8 }}
    max_slices: 1
    slice_template:
      {template}
"""
ON_COREWEAVE = "coreweave: {{ instance_type: gd-8xh100ib-i128, annotations: {{ {fault} }} }}"
ON_NODES = "kubernetes: { node_selector: { type: kwok } }"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    yard = ClusterManager.of({**os.environ, "XDG_STATE_HOME": str(tmp_path_factory.mktemp("slices"))})
    try:
        yield anyio.run(
            yard.up, "slices", ClusterOptions(simulated=(SimulatedNodeGroup(2, "h100x8"),), coreweave=True)
        )
    finally:
        anyio.run(yard.down, "slices")


@pytest.fixture
async def api(cloud: Cluster) -> AsyncGenerator[Client]:
    async with connect(read_kubeconfig([cloud.kubeconfig]).cluster(), "iris") as client:
        await client.apply(NAMESPACE, {"metadata": {"name": ROOM}}, "test")
        yield client
        assert await left(client) == []


async def left(api: Client) -> list[str]:
    """What there is of any slice."""
    kinds: list[Kind[KubeObject]] = [NODE_POOL, POD, SECRET]
    found = [(kind, await api.list(kind, "" if kind is NODE_POOL else ROOM, MINE)) for kind in kinds]
    return [f"{kind.name} {one.meta.name}" for kind, listed in found for one in listed.items]


def cluster_file(cloud: Cluster, template: str, boot: str = "5m") -> ClusterFile:
    bought = template.startswith("coreweave")
    text = FILE.format(
        platform="coreweave" if bought else "kubernetes",
        region="region: US-EAST-04A," if bought else "",
        kubeconfig=cloud.kubeconfig,
        boot=boot,
        template=template,
    )
    return loads(text, ClusterFile, {}, file="cluster.yaml")


def on_coreweave(fault: str = "") -> str:
    return ON_COREWEAVE.format(fault=f'{FAULT}: "{fault}"' if fault else "")


@asynccontextmanager
async def platform(cloud: Cluster, api: Client, template: str) -> AsyncGenerator[KubernetesPlatform]:
    settings = kubernetes_settings(cluster_file(cloud, template))
    async with KubernetesPlatform(settings, api, CLOCK, system_rng()) as made:
        yield made
        await made.shutdown()


def order(file: ClusterFile) -> SliceRequest:
    (group,) = scale_groups(file)
    return SliceRequest(
        SystemIds().new(SliceId), group.name, group.machines, group.shape, (), "here:1", "s3cret"
    )


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        ("quota", "group_quota", "quota"),
        ("no-capacity", "group_capacity", "no machines"),
        ("never-ready", "group_backoff", "h100_8x"),
    ],
)
async def test_a_job_says_why_its_slice_cannot_be_had_and_no_pool_is_left(
    cloud: Cluster, api: Client, tmp_path: Path, fault: str, code: str, words: str
):
    file = cluster_file(cloud, on_coreweave(fault), boot="3s")
    async with (
        run_iris(file, tmp_path, ("127.0.0.1", 0)) as running,
        AsyncIrisClient.remote(running.address, token=running.token) as client,
    ):
        job = await client.submit(["true"], "train", resources={"gpu": "H100:8"})
        told = await _told(client, job.name, code)
        assert words in told.sentence
        await running.platform.shutdown()
    assert await left(api) == []


async def _told(client: AsyncIrisClient, job: str, code: str) -> JobExplanation:
    told = why(await client.get(job))
    with anyio.fail_after(PATIENCE_S):
        while told.code != code:
            await CLOCK.sleep(LOOK_EVERY)
            told = why(await client.get(job))
    return told


@pytest.mark.parametrize("template", [on_coreweave(), ON_NODES], ids=["coreweave", "kubernetes"])
async def test_a_slice_comes_up_whole_is_found_again_and_goes(cloud: Cluster, api: Client, template: str):
    for node in (await api.list(NODE)).items:
        await api.patch(NODE, node.meta.name, MergePatch({"metadata": {"labels": {"type": "kwok"}}}))
    wanted = order(cluster_file(cloud, template))
    settings = kubernetes_settings(cluster_file(cloud, template))
    async with KubernetesPlatform(settings, api, CLOCK, system_rng()) as first:
        changes = first.changes()
        await first.create_slice(wanted)
        before = await until(changes, wanted.id, SliceState.BOOTSTRAPPING)
        assert len(before.hosts) == 2
    pods = (await api.list(POD, ROOM, MINE)).items
    assert len({pod.spec.node_name for pod in pods}) == 2
    async with platform(cloud, api, template) as second:
        assert await second.list_all_slices() == [before]
        changes = second.changes()
        await second.terminate(wanted.id)
        await until_gone(second, changes, wanted.id)
    assert not (await api.list(NODE, select=MINE)).items


async def test_a_lost_node_fails_its_slice_by_name(cloud: Cluster, api: Client):
    template = on_coreweave()
    wanted = order(cluster_file(cloud, template))
    async with platform(cloud, api, template) as made:
        changes = made.changes()
        await made.create_slice(wanted)
        await until(changes, wanted.id, SliceState.BOOTSTRAPPING)
        (pool,) = (await api.list(NODE_POOL, select=MINE)).items
        await api.patch(
            NODE_POOL, pool.meta.name, MergePatch({"metadata": {"annotations": {FAULT: "node-lost"}}})
        )
        seen = await until(changes, wanted.id, SliceState.FAILED)
        assert f"iris-worker-{pool.meta.name}-" in seen.message
        assert "the node says nothing any more" in seen.message


async def test_many_slices_are_made_and_given_back_at_once(cloud: Cluster, api: Client):
    template = on_coreweave()
    file = cluster_file(cloud, template)
    wanted = [order(file) for _ in range(25)]
    async with platform(cloud, api, template) as made:
        async with anyio.create_task_group() as group:
            for one in wanted:
                group.start_soon(made.create_slice, one)
        assert {seen.id for seen in await made.list_all_slices()} == {one.id for one in wanted}
    assert not (await api.list(NODE_POOL, select=ALL)).items


async def test_an_installation_says_what_it_waits_for_and_goes_without_a_trace(api: Client):
    """This cluster has no storage: the controller's volume is never made."""
    text = (FILES / "kubernetes.yaml").read_text()
    file = loads(text, ClusterFile, {}, file="cluster.yaml")
    installer = Installer(api, CLOCK, manifests(file, text), names_of(file))
    applied = [name async for name in installer.apply()]
    assert applied == [name async for name in installer.apply()]
    with anyio.fail_after(PATIENCE_S):
        async for why_not in installer.wait():
            if "unbound immediate PersistentVolumeClaims" in why_not:
                break
    removed = [name async for name in installer.remove(purge=False)]
    assert {"Deployment iris-controller", "Role iris-controller"} <= set(removed)
    assert not (await api.list(DEPLOYMENT, OTHER_ROOM)).items
    assert [claim.meta.name for claim in (await api.list(CLAIM, OTHER_ROOM)).items] == [
        "iris-controller-state"
    ]
    assert f"Namespace {OTHER_ROOM}" in [name async for name in installer.remove(purge=True)]


async def test_an_installation_of_two_controllers_is_what_the_api_server_takes(api: Client):
    text = (FILES / "kubernetes.yaml").read_text().replace("namespace: jobs", "namespace: pair")
    text = text.replace("kubernetes: {}", "kubernetes: { replicas: 2, storage_class: shared }", 1)
    text += "storage: { database: '${IRIS_DATABASE}' }\n"
    file = loads(text, ClusterFile, {"IRIS_DATABASE": "postgresql://db/iris"}, file="cluster.yaml")
    installer = Installer(api, CLOCK, manifests(file, text), names_of(file))
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
