"""Slices on a real API server with simulated nodes, and what a cluster refuses that is not as it should be."""

import os
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from neorion.capacity.coreweave import NODE_POOL
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.pki import Subject
from neorion.drydock.simulated import SimulatedNodeGroup
from neorion.iris.adapters.cluster_file import ClusterFile, kubernetes_settings, scale_groups
from neorion.iris.adapters.installation import Installer, manifests, names_of
from neorion.iris.adapters.platforms.kubernetes import GroupTemplate, KubernetesPlatform, PoolTemplate
from neorion.iris.app.platform import LocalWorkers, open_platform
from neorion.iris.model import SliceId, SliceState
from neorion.iris.ports import SliceRequest
from neorion.keel.base import Denied, Duration, Error
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.config import loads
from neorion.keel.kube import Kind, KubeObject, MergePatch, Selector
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.core import CLAIM, DEPLOYMENT, NAMESPACE, NODE, POD, RESOURCE_QUOTA, SECRET
from tests.contracts.test_platform import until, until_gone

pytestmark = [pytest.mark.anyio, pytest.mark.needs("drydock"), pytest.mark.timeout(480)]

ROOM = "iris"
RBAC = "rbac.authorization.k8s.io"
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
  timeouts: {{ boot_timeout: 5m, init_timeout: 1s }}
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
ON_COREWEAVE = "coreweave: { instance_type: gd-8xh100ib-i128 }"
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


def cluster_file(
    cloud: Cluster, template: str, kubeconfig: Path | None = None, more: str = ""
) -> ClusterFile:
    bought = template.startswith("coreweave")
    text = FILE.format(
        platform="coreweave" if bought else "kubernetes",
        region=f"region: US-EAST-04A, {more}" if bought else "",
        kubeconfig=kubeconfig or cloud.kubeconfig,
        template=template,
    )
    return loads(text, ClusterFile, {}, file="cluster.yaml")


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


@pytest.mark.parametrize("template", [ON_COREWEAVE, ON_NODES], ids=["coreweave", "kubernetes"])
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


LIMITED = "limited"
RULES = {
    "pods": "get list watch create delete",
    "secrets": "get list watch create patch delete",
    "nodepools": "get list watch create patch delete",
    "nodes": "get list watch patch",
}


@pytest.fixture(scope="module")
def limited(cloud: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kubeconfig of a user whose rights the test says."""
    path = tmp_path_factory.mktemp("limited") / "kubeconfig"
    cloud.pki.issue(LIMITED, Subject(LIMITED))
    cloud.pki.kubeconfig(path, LIMITED, cloud.layout.server)
    return path


async def grant(api: Client, but: str) -> None:
    """Every right of a controller, except for one, as in "patch nodes"."""
    rules = [
        {
            "apiGroups": ["", "compute.coreweave.com"],
            "resources": [resource],
            "verbs": [verb for verb in verbs.split() if f"{verb} {resource}" != but],
        }
        for resource, verbs in RULES.items()
    ]
    role, binding = (
        Kind(KubeObject, name, f"{name.lower()}s", RBAC, namespaced=False)
        for name in ("ClusterRole", "ClusterRoleBinding")
    )
    await api.apply(role, {"metadata": {"name": LIMITED}, "rules": rules}, "test")
    subject = {"kind": "User", "name": LIMITED, "apiGroup": RBAC}
    to = {"kind": "ClusterRole", "name": LIMITED, "apiGroup": RBAC}
    await api.apply(binding, {"metadata": {"name": LIMITED}, "subjects": [subject], "roleRef": to}, "test")


@pytest.mark.parametrize(
    "missing", [f"{verb} {kind}" for kind, verbs in RULES.items() for verb in verbs.split()]
)
async def test_a_right_that_is_missing_is_named_before_anything_begins(
    cloud: Cluster, api: Client, limited: Path, tmp_path: Path, missing: str
):
    await grant(api, but=missing)
    file = cluster_file(cloud, ON_COREWEAVE, kubeconfig=limited, more="node_pools: per_group,")
    place = LocalWorkers(tmp_path, "here:1", lambda _: [])
    with anyio.fail_after(PATIENCE_S):
        while True:
            # The API server hears of rights a moment after they are changed.
            with pytest.raises(Denied) as refused:
                async with open_platform(file, place, CLOCK, system_rng()):
                    pytest.fail("it began")
            if refused.value.sentence == f"The controller may not do this in the cluster: {missing}.":
                break
    assert (refused.value.code, "iris cluster up" in refused.value.hint) == ("iris.platform_rights", True)


ROOMS: dict[str, tuple[Kind[KubeObject], dict[str, Any]]] = {
    "no-pods": (
        Kind(KubeObject, "ResourceQuota", "resourcequotas"),
        {"metadata": {"name": "none", "namespace": "no-pods"}, "spec": {"hard": {"pods": "0"}}},
    ),
}
WRONG: list[tuple[str, dict[str, Any], tuple[str, str, str]]] = [
    ("gone", {}, ("iris.platform_missing", 'namespaces "gone" not found', "Create the namespace")),
    ("iris", {"type": "gd-9xh100"}, ("iris.platform_refused", "gd-9xh100", "Correct the scale group")),
    (
        "iris",
        {"notes": {"not a key": "x"}},
        ("iris.platform_refused", "not a key", "Correct the scale group"),
    ),
    ("iris", {"type": "gb200-4x"}, ("iris.platform_refused", "multiple of 18", "Correct the scale group")),
    ("iris", {"image": ""}, ("iris.platform_refused", "image", "Correct the scale group")),
    ("strict", {"host": True}, ("iris.pod_security", "violates PodSecurity", "enforce: privileged")),
    ("no-pods", {}, ("iris.quota", "exceeded quota", "Ask for more quota")),
]


@pytest.mark.parametrize(("room", "change", "told"), WRONG)
async def test_what_the_cluster_refuses_is_told_with_the_fix_and_leaves_nothing(
    cloud: Cluster, api: Client, room: str, change: dict[str, Any], told: tuple[str, str, str]
):
    code, words, hint = told
    if room != "gone":
        level = "restricted" if room == "strict" else "privileged"
        labels = {"pod-security.kubernetes.io/enforce": level}
        await api.apply(NAMESPACE, {"metadata": {"name": room, "labels": labels}}, "test")
    if room in ROOMS:
        await api.apply(*ROOMS[room], "test")
        await until_counted(api, room)
    file = cluster_file(cloud, ON_COREWEAVE)
    usual = kubernetes_settings(file)
    pool = PoolTemplate(change.get("type", "gd-8xh100ib-i128"), annotations=change.get("notes", {}))
    settings = replace(
        usual,
        namespace=room,
        image=change.get("image", "worker:1"),
        host_network=change.get("host", False),
        groups={"h100_8x": GroupTemplate(pool)},
        acceptance_timeout=Duration.of(seconds=20),
    )
    async with KubernetesPlatform(settings, api, CLOCK, system_rng()) as made:
        with pytest.raises(Error) as refused:
            await made.create_slice(order(file))
        assert refused.value.code == code
        assert words in refused.value.sentence
        assert hint in refused.value.hint
        assert await made.list_all_slices() == []
    kinds: list[Kind[KubeObject]] = [NODE_POOL, POD, SECRET]
    assert [one for kind in kinds for one in (await api.list(kind, select=MINE)).items] == []


async def until_counted(api: Client, room: str) -> None:
    """A quota holds when the controller manager has counted what there is."""
    with anyio.fail_after(PATIENCE_S):
        while not (await api.get(RESOURCE_QUOTA.raw, "none", room)).get("status", {}):
            await CLOCK.sleep(LOOK_EVERY)


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("InvalidImageName", 'couldn\'t parse image name "worker:"'),
        ("ImagePullBackOff", 'Back-off pulling image "worker:1"'),
        ("CreateContainerConfigError", 'secret "token" not found'),
    ],
)
async def test_what_the_kubelet_cannot_start_fails_the_slice_in_its_words(
    cloud: Cluster, api: Client, reason: str, message: str
):
    template = ON_COREWEAVE
    wanted = order(cluster_file(cloud, template))
    async with platform(cloud, api, template) as made:
        changes = made.changes()
        await made.create_slice(wanted)
        await until(changes, wanted.id, SliceState.BOOTSTRAPPING)
        pod = (await api.list(POD, ROOM, MINE)).items[0]
        # Simulated Pods run; a real kubelet says this of an image or a file that is wrong.
        waiting = {"waiting": {"reason": reason, "message": message}}
        status = {"phase": "Pending", "containerStatuses": [_container(waiting)]}
        await api.patch(POD, pod.meta.name, MergePatch({"status": status}), ROOM, "status")
        seen = await until(changes, wanted.id, SliceState.FAILED)
        assert f"cannot start: {reason}: {message}" in seen.message


def _container(state: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "iris-worker",
        "image": "worker:1",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": state,
    }
