"""Images behind a password on real nodes: tasks and workers get them with the Secret, and say what is wrong without it."""

import json
from base64 import b64encode
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from msgspec import structs

from neorion.drydock.cluster import Cluster
from neorion.drydock.images import BUSYBOX, ImageStore
from neorion.drydock.machine import find
from neorion.drydock.node import nodes
from neorion.iris.adapters.platforms.kubernetes import GroupTemplate, KubernetesPlatform, KubernetesSettings
from neorion.iris.adapters.runtimes.process.result_file import load
from neorion.iris.model import Resources, SliceId, SliceState
from neorion.iris.ports import SliceRequest
from neorion.iris.testing.runtime_waits import ended
from neorion.keel.base import Duration, Retry
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.kube.client import connect, find_cluster
from neorion.keel.run import Backoff, retry
from tests.contracts.runtime import IN_PROCESSES, LONG, Rig
from tests.contracts.test_platform import until, until_gone
from tests.iris.processes import free_port
from tests.node.pods import MINUTES, NEEDS, Kubectl
from tests.node.test_kubernetes_runtime import opened, settings

pytestmark = [pytest.mark.anyio, NEEDS, MINUTES]

CLOCK = SystemClock()
HOST = "private.example.com"
IMAGE = f"{HOST}/busybox:1"
USER, PASSWORD = "puller", "of-the-test"
# The password above, by bcrypt with the fewest rounds.
USERS = f"{USER}:$2b$04$8dxwU3ZCiqd8PEws2KNQqepHfF99a5MehAAfbzXMOetBlwVvH9R/O\n"
STARTING = Backoff(first=Duration.of(ms=100), most=Duration.of(seconds=1), attempts=60)
PULL = "iris-image-pull"


@pytest.fixture
async def private_registry(node_cluster: Cluster, tmp_path: Path) -> AsyncGenerator[None]:
    """A registry that wants a password. The nodes find it under a name of its own."""
    (tmp_path / "users").write_text(USERS)
    address = f"{node_cluster.layout.addresses.host}:{free_port()}"
    config = {
        "version": "0.1",
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(tmp_path / "images")}},
        "http": {"addr": address},
        "auth": {"htpasswd": {"realm": "tests", "path": str(tmp_path / "users")}},
    }
    (tmp_path / "config.yml").write_text(json.dumps(config))
    store = ImageStore.of(node_cluster.shelf)
    url = f"http://{address}"
    folders = [node.folder / "registries" / HOST for node in nodes(node_cluster.layout)]
    for folder in folders:
        folder.mkdir()
        host = f'[host."{url}"]\n  capabilities = ["pull", "resolve"]\n'
        (folder / "hosts.toml").write_text(f'server = "{url}"\n{host}')

    async def push() -> None:
        to = f"docker://{address}/busybox:1"
        how = ("--quiet", "--tls-verify=false", f"--creds={USER}:{PASSWORD}")
        try:
            await store.buildah("push", *how, BUSYBOX.name, to)
        except Exception as error:
            raise Retry("test.registry", str(error)) from error

    command = [find("docker-registry"), "serve", str(tmp_path / "config.yml")]
    async with await anyio.open_process(command, stdout=None, stderr=None) as process:
        await retry(push, STARTING, CLOCK, system_rng())
        yield
        process.terminate()
    for folder in folders:
        (folder / "hosts.toml").unlink()
        folder.rmdir()


async def give_secret(kubectl: Kubectl, password: str) -> None:
    login = b64encode(f"{USER}:{password}".encode()).decode()
    data = json.dumps({"auths": {HOST: {"auth": login}}}).encode()
    await kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": PULL},
            "type": "kubernetes.io/dockerconfigjson",
            "data": {".dockerconfigjson": b64encode(data).decode()},
        }
    )


@pytest.mark.usefixtures("private_registry")
async def test_a_task_runs_in_an_image_that_needs_a_password(
    node_cluster: Cluster, kubectl: Kubectl, tmp_path: Path
):
    await give_secret(kubectl, PASSWORD)
    pods = structs.replace(settings(kubectl.namespace), image=IMAGE, pull_secrets=(PULL,))
    rig = Rig(lambda: opened(node_cluster, tmp_path / "runtime", pods), IN_PROCESSES, tmp_path)
    order = rig.call(lambda: 42)
    async with rig.life() as runtime:
        await runtime.renew(LONG)
        await runtime.start(order)
        end = await ended(runtime, order.attempt)
        assert end.well, end
        assert end.result is not None
        assert load(end.result) == 42


@pytest.mark.usefixtures("private_registry")
@pytest.mark.parametrize("password", ["", "wrong"], ids=["no secret", "wrong password"])
async def test_a_worker_whose_image_is_refused_fails_its_slice_and_names_the_fix(
    node_cluster: Cluster, kubectl: Kubectl, password: str
):
    if password:
        await give_secret(kubectl, password)
    usual = KubernetesSettings(
        kubectl.namespace, "here:1", IMAGE, {"cpu": GroupTemplate()}, pull_secrets=(PULL,)
    )
    order = SliceRequest(
        SystemIds().new(SliceId), "cpu", 1, Resources(cpu_milli=10, memory=2**24), (), "here:1", "token"
    )
    async with (
        connect(find_cluster(node_cluster.kubeconfig), "iris", CLOCK, system_rng()) as api,
        KubernetesPlatform(usual, api, CLOCK, system_rng()) as platform,
    ):
        changes = platform.changes()
        await platform.create_slice(order)
        seen = await until(changes, order.id, SliceState.FAILED)
        assert "cannot start: ImagePullBackOff" in seen.message
        assert "401 Unauthorized" in seen.message
        assert "image_pull_secrets" in seen.message
        await platform.terminate(order.id)
        await until_gone(platform, changes, order.id)
    left = (await kubectl.get("pods,secrets", "--selector=iris-managed=true"))["items"]
    assert left == []
