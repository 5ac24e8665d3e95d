"""`iris cluster up` on a real API server: two controllers, and what the cluster refuses before anything is applied."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from neorion.drydock.cluster import Cluster
from neorion.drydock.pki import Subject
from neorion.keel.base import Duration, NotFound
from neorion.keel.clock import SystemClock
from neorion.keel.kube import Kind, KubeObject, MergePatch
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.core import CONFIG_MAP, DEPLOYMENT, NAMESPACE

pytestmark = [pytest.mark.anyio, pytest.mark.needs("drydock"), pytest.mark.timeout(300)]

FILES = Path(__file__).parents[1] / "iris" / "cluster_files"
RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLE, CLUSTER_ROLE_BINDING = (
    Kind(KubeObject, name, f"{name.lower()}s", RBAC, namespaced=False)
    for name in ("ClusterRole", "ClusterRoleBinding")
)
PAIR = "\nstorage: { database: '${IRIS_DATABASE}' }\n"
LOOK_EVERY = Duration.of(ms=50)


@pytest.fixture
async def api(cluster: Cluster) -> AsyncGenerator[Client]:
    async with connect(read_kubeconfig([cluster.kubeconfig]).cluster(), "iris") as client:
        yield client


def cluster_file(folder: Path, namespace: str, *, two: bool = False) -> Path:
    text = (FILES / "kubernetes.yaml").read_text().replace("namespace: jobs", f"namespace: {namespace}")
    if two:
        text = text.replace("kubernetes: {}", "kubernetes: { replicas: 2, storage_class: shared }", 1) + PAIR
    path = folder / "cluster.yaml"
    path.write_text(text)
    return path


async def iris(
    verb: str, config: Path, kubeconfig: Path, *options: str
) -> subprocess.CompletedProcess[bytes]:
    """As a user runs it; the variables of the controller are not set here."""
    command = [str(Path(sys.executable).with_name("iris")), "cluster", verb, "--config", str(config)]
    command += ["--kubeconfig", str(kubeconfig), *options]
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return await anyio.run_process(command, env=env, check=False)


async def test_an_installation_of_two_controllers_is_what_the_api_server_takes(
    cluster: Cluster, api: Client, tmp_path: Path
):
    config = cluster_file(tmp_path, "pair", two=True)
    for _ in range(2):
        done = await iris("up", config, cluster.kubeconfig, "--no-wait")
        assert done.returncode == 0, done.stderr
    pair = json.loads(await api.read("/apis/apps/v1/namespaces/pair/deployments/iris-controller"))
    assert (pair["spec"]["replicas"], pair["spec"]["strategy"]["type"]) == (2, "RollingUpdate")
    [container] = pair["spec"]["template"]["spec"]["containers"]
    assert container["command"][-1] == "--standby"
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert container["livenessProbe"]["httpGet"]["path"] == "/health"
    done = await iris("down", config, cluster.kubeconfig, "--purge", "--yes")
    assert done.returncode == 0, done.stderr


async def test_a_claim_that_cannot_change_is_told_before_anything_is_applied(
    cluster: Cluster, api: Client, tmp_path: Path
):
    config = cluster_file(tmp_path, "alone")
    done = await iris("up", config, cluster.kubeconfig, "--no-wait")
    assert done.returncode == 0, done.stderr
    before = await api.get(CONFIG_MAP, "iris-cluster-config", "alone")
    done = await iris("up", cluster_file(tmp_path, "alone", two=True), cluster.kubeconfig, "--no-wait")
    said = done.stderr.decode()
    assert (done.returncode, "iris.claim_fixed" in said) == (5, True), said
    assert "iris-controller-state is ReadWriteOnce, the cluster file needs ReadWriteMany" in said
    assert await api.get(CONFIG_MAP, "iris-cluster-config", "alone") == before
    assert (await api.get(DEPLOYMENT, "iris-controller", "alone")).meta.generation == 1
    await iris("down", config, cluster.kubeconfig, "--purge", "--yes")


async def test_a_user_without_the_rights_applies_nothing(cluster: Cluster, api: Client, tmp_path: Path):
    """They may create namespaces, which come first."""
    user, kubeconfig = "newcomer", tmp_path / "kubeconfig"
    cluster.pki.issue(user, Subject(user))
    cluster.pki.kubeconfig(kubeconfig, user, cluster.layout.server)
    rules = [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "create", "patch"]},
        {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["create", "patch"]},
    ]
    await api.apply(CLUSTER_ROLE, {"metadata": {"name": user}, "rules": rules}, "test")
    binding = {
        "metadata": {"name": user},
        "subjects": [{"kind": "User", "name": user, "apiGroup": RBAC}],
        "roleRef": {"kind": "ClusterRole", "name": user, "apiGroup": RBAC},
    }
    await api.apply(CLUSTER_ROLE_BINDING, binding, "test")
    config = cluster_file(tmp_path, "forbidden")
    with anyio.fail_after(60):
        while True:
            done = await iris("up", config, kubeconfig, "--no-wait")
            said = done.stderr.decode()
            # The API server hears of rights a moment after they are changed.
            if "Role iris-controller" in said:
                break
    assert (done.returncode, "iris.install_rights" in said) == (4, True), said
    assert "may not create roles.rbac.authorization.k8s.io in forbidden" in said
    with pytest.raises(NotFound):
        await api.get(NAMESPACE, "forbidden")


async def test_coreweave_is_refused_on_another_cluster_before_anything_is_applied(
    cluster: Cluster, api: Client, tmp_path: Path
):
    config = tmp_path / "cluster.yaml"
    text = (FILES / "coreweave.yaml").read_text()
    config.write_text(text.replace("namespace: iris", "namespace: elsewhere"))
    done = await iris("up", config, cluster.kubeconfig, "--no-wait")
    said = done.stderr.decode()
    assert (done.returncode, "iris.no_node_pools" in said) == (2, True), said
    with pytest.raises(NotFound):
        await api.get(NAMESPACE, "elsewhere")


async def test_a_namespace_that_goes_is_told(cluster: Cluster, api: Client, tmp_path: Path):
    """A finalizer keeps it, as a stuck volume would."""
    keeper = {"metadata": {"name": "keeper", "namespace": "going", "finalizers": ["test.neorion.dev/keep"]}}
    await api.apply(NAMESPACE, {"metadata": {"name": "going"}}, "test")
    await api.apply(CONFIG_MAP, keeper, "test")
    await api.delete(NAMESPACE, "going")
    done = await iris("up", cluster_file(tmp_path, "going"), cluster.kubeconfig, "--no-wait")
    said = done.stderr.decode()
    assert (done.returncode, "iris.namespace_leaving" in said) == (5, True), said
    await api.patch(CONFIG_MAP, "keeper", MergePatch({"metadata": {"finalizers": None}}), "going")
    with anyio.fail_after(60):
        while [one for one in (await api.list(NAMESPACE)).items if one.meta.name == "going"]:
            await SystemClock().sleep(LOOK_EVERY)
