"""A cluster that was made without a network, and gets one."""

import os
from pathlib import Path

import pytest

from neorion.drydock.status import status_of
from neorion.drydock.yard import Wishes, Yard
from tests.node.pods import MINUTES, NEEDS

pytestmark = [pytest.mark.anyio, NEEDS, MINUTES]


async def test_controllers_follow_the_api_server_to_its_new_address_and_status_names_what_died(
    tmp_path: Path,
):
    yard = Yard.of({**os.environ, "XDG_STATE_HOME": str(tmp_path)})
    try:
        before = await yard.up("late")
        cluster = await yard.up("late", Wishes(networked=True))
        assert cluster.layout.server != before.layout.server
        manager = next(part for part in cluster.control_plane() if part.name == "kube-controller-manager")
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}
        async with cluster.api() as api:
            await api.create("/api/v1/namespaces", space)
            # Nobody but the controller manager makes it.
            await cluster.until(manager, lambda: api.get("/api/v1/namespaces/new/serviceaccounts/default"))
        assert (await status_of(cluster)).missing == ()
        await cluster.stop("registry")
        assert (await status_of(cluster)).missing == ("registry",)
    finally:
        await yard.down("late")
