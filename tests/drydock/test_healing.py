"""A control plane whose parts die."""

import pytest

from neorion.drydock.cluster import Cluster
from neorion.drydock.host import running

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
