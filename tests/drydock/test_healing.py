"""A control plane whose parts die."""

import os
from pathlib import Path

import pytest

from neorion.drydock.api import Api
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.host import running
from neorion.drydock.installed_objects import Manifest, ensure_object

pytestmark = pytest.mark.anyio


async def test_what_is_stored_survives_the_death_of_etcd_and_of_the_api_server(own_cluster: Cluster):
    path = "/api/v1/namespaces/default/configmaps"
    kept = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "b"}}
    async with own_cluster.api() as api:
        await api.create(path, kept)
    await own_cluster.stop("etcd")
    await own_cluster.stop("kube-apiserver")
    assert {"etcd", "kube-apiserver"}.isdisjoint(
        process.part for process in running(own_cluster.layout.folder)
    )
    await own_cluster.start_control_plane()
    async with own_cluster.api() as api:
        assert (await api.get(f"{path}/kept"))["data"] == {"a": "b"}


class _Interrupted(Exception):
    pass


@pytest.mark.needs("drydock")
@pytest.mark.timeout(240)
async def test_up_finishes_an_installation_of_kueue_that_was_broken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    yard = ClusterManager.of({**os.environ, "XDG_STATE_HOME": str(tmp_path)})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "any"},
        "spec": {"containers": [{"name": "main", "image": "any"}]},
    }

    async def interrupted(api: Api, item: Manifest) -> None:
        if item["kind"] == "CustomResourceDefinition":
            raise _Interrupted
        await ensure_object(api, item)

    try:
        with monkeypatch.context() as broken:
            broken.setattr("neorion.drydock.installed_objects.ensure_object", interrupted)
            with pytest.raises(ExceptionGroup):
                await yard.up("broken", ClusterOptions(kueue=True))
        cluster = await yard.up("broken")
        assert running(cluster.layout.folder, "kueue")
        async with cluster.api() as api:
            # Its webhooks answer: without them no pod is let in.
            await api.create("/api/v1/namespaces/default/pods", pod)
    finally:
        await yard.down("broken")
