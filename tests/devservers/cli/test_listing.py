"""`devctl list -w` where there is nothing to watch."""

import io
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import pytest

from neorion.devservers.cli.commands import list_impl
from neorion.devservers.client import DevServerApi
from neorion.keel.base import NotFound
from neorion.keel.cli import ColorMode, SharedOptions
from neorion.keel.cli.kit import Output, TerminalStream
from neorion.keel.clock import SystemClock
from neorion.keel.kube import UnknownKind
from neorion.keel.kube.client import Client
from neorion.keel.kube.testing import MemoryApi, MemoryCluster


class BareApi(MemoryApi):
    """Of a cluster without definitions."""

    def watch(self, *_: object, **__: object) -> AbstractAsyncContextManager[Any]:
        raise UnknownKind("404 page not found")


@pytest.mark.anyio
async def test_who_watches_a_cluster_without_servers_hears_what_it_lacks():
    clock = SystemClock()
    fleet = DevServerApi(cast("Client", BareApi(MemoryCluster(clock), clock)), "dev-ann", clock)
    screen = TerminalStream.of(io.StringIO(), ColorMode.NEVER, {})
    with pytest.raises(NotFound) as refused:
        await list_impl.watch_servers(fleet, Output(SharedOptions(), screen, screen, {}))
    assert refused.value.code == "devservers.not_installed"
