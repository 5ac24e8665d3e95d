"""A real control plane: what it answers."""

from pathlib import Path

import anyio
import pytest

from neorion.drydock.api import Object
from neorion.drydock.cluster import Cluster
from neorion.drydock.control import EMPTY_LARGE_LOGS, PARTS
from neorion.drydock.host import running
from neorion.keel.base import Invalid, NotFound

pytestmark = pytest.mark.anyio


def _config_map(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}


async def test_it_is_the_version_that_is_pinned(cluster: Cluster):
    async with cluster.api() as api:
        version = await api.get("/version")
    assert version["gitVersion"] == "v1.36.3"


async def test_its_logs_are_kept_small(cluster: Cluster, tmp_path: Path):
    assert [part.name for part in cluster.control_plane()] == [*PARTS]
    assert running(cluster.layout.folder, "log-keeper")
    large, small = tmp_path / "etcd.log", tmp_path / "kwok.log"
    small.write_text("words")
    with large.open("ab") as writer:
        writer.truncate(17 * 2**20)
        await anyio.run_process(["/bin/sh", "-c", EMPTY_LARGE_LOGS, str(tmp_path)])
        writer.write(b"goes on")
    assert large.read_text() == "goes on"
    assert small.read_text() == "words"


async def test_what_kubectl_remembers_of_it_goes_with_it(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "namespace/default" in await cluster.kubectl("get", "namespaces", "-o", "name")
    assert list(tmp_path.iterdir()) == []


async def test_each_test_has_a_namespace_ready_for_pods(cluster: Cluster, kube_namespace: str):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "first"},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }
    async with cluster.api() as api:
        made = await api.create(f"/api/v1/namespaces/{kube_namespace}/pods", pod)
    # Admission gave it the account and its token.
    assert made["spec"]["serviceAccountName"] == "default"
    assert made["spec"]["volumes"][0]["projected"]


async def test_a_service_account_may_do_nothing_it_was_not_given(cluster: Cluster, kube_namespace: str):
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{kube_namespace}:default",
            "resourceAttributes": {"namespace": kube_namespace, "verb": "list", "resource": "secrets"},
        },
    }
    async with cluster.api() as api:
        answer = await api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    assert answer["status"]["allowed"] is False


async def test_refusals_carry_the_servers_words(cluster: Cluster, kube_namespace: str):
    path = f"/api/v1/namespaces/{kube_namespace}/configmaps"
    async with cluster.api() as api:
        with pytest.raises(NotFound, match='configmaps "nobody" not found'):
            await api.get(f"{path}/nobody")
        with pytest.raises(Invalid, match="Invalid value"):
            await api.create(path, _config_map("NOT A NAME"))
