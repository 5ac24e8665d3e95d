"""A cluster that was made without a network, and gets one."""

import os
from pathlib import Path

import anyio
import pytest

from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.node import add, bring_up
from neorion.drydock.status import status_of
from tests.node.pods import MINUTES, NEEDS

KUBELET_PORT = 10250

pytestmark = [pytest.mark.anyio, NEEDS, MINUTES, pytest.mark.needs("drydock")]


@pytest.fixture
def dead_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks it for a cluster of this machine gets no answer."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")


@pytest.mark.usefixtures("dead_proxy")
async def test_controllers_follow_it_nodes_return_to_it_and_status_names_what_died(
    tmp_path: Path,
):
    yard = ClusterManager.of({**os.environ, "XDG_STATE_HOME": str(tmp_path)})
    try:
        before = await yard.up("late")
        cluster = await yard.up("late", ClusterOptions(networked=True))
        assert cluster.layout.server != before.layout.server
        manager = next(part for part in cluster.control_plane() if part.name == "kube-controller-manager")
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}
        async with cluster.api() as api:
            await api.create("/api/v1/namespaces", space)
            # Nobody but the controller manager makes it.
            await cluster.until(manager, lambda: api.get("/api/v1/namespaces/new/serviceaccounts/default"))
        assert (await status_of(cluster)).missing == ()
        assert "default" in await cluster.kubectl("get", "namespaces")
        node = await add(cluster, "quick")
        await cluster.stop(node.part)
        await bring_up(cluster, node)
        # At once: its last words from before were that it is Ready.
        async with await anyio.connect_tcp(str(node.address), KUBELET_PORT):
            pass
        await cluster.stop("registry")
        assert (await status_of(cluster)).missing == ("registry",)
    finally:
        await yard.down("late")
