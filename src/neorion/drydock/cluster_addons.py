"""Services that a cluster needs before real nodes can join: network, registry, DNS, storage."""

from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from neorion.drydock.binaries import Tell, build_missing, ignore_progress
from neorion.drydock.cluster import Cluster
from neorion.drydock.dns import DNS_PROGRAMS, dns_part, publish_dns
from neorion.drydock.host import Component
from neorion.drydock.images import PAUSE, ImageStore, Registry, provide
from neorion.drydock.network import raise_bridge
from neorion.drydock.storage import publish_storage, storage_part

# The parts that `install_addons` starts.
FITTED: Final = ("registry", "coredns", "storage")


async def set_up_bridge(cluster: Cluster) -> None:
    """Creates the bridge before the control plane starts, so that the API server can listen on it; safe to repeat."""
    bridge = cluster.layout.addresses.bridge
    cluster.ledger.record("cgroup", bridge)
    cluster.ledger.record("table", f"inet {bridge}")
    cluster.ledger.record("link", bridge)
    await raise_bridge(cluster.layout.addresses)


async def install_addons(cluster: Cluster, tell: Tell = ignore_progress) -> None:
    """Starts missing services that nodes need, after the control plane; safe to repeat."""
    await build_missing(cluster.shelf, (*DNS_PROGRAMS, "kubelet"), tell)
    tell("starting registry, DNS and storage")
    async with anyio.create_task_group() as group:
        group.start_soon(_serve_images, cluster)
        group.start_soon(_serve_names, cluster)
        group.start_soon(_serve_volumes, cluster)


async def _serve_images(cluster: Cluster) -> None:
    registry = Registry.of(cluster.layout)
    await _serve(cluster, Component("registry", registry.command()), registry.address)
    store = ImageStore.of(cluster.shelf)
    await provide(store, [PAUSE.name])
    await store.push(PAUSE.name, registry.address)


async def _serve_names(cluster: Cluster) -> None:
    async with cluster.api() as api:
        # First, because CoreDNS without its rights does not answer for seconds.
        await publish_dns(cluster.layout, api)
    part = dns_part(cluster.layout, cluster.pki, cluster.shelf)
    await _serve(cluster, part, f"{cluster.layout.addresses.host}:53")


async def _serve_volumes(cluster: Cluster) -> None:
    async with cluster.api() as api:
        await publish_storage(api)
    await cluster.ensure(storage_part(cluster.layout, cluster.pki))


async def _serve(cluster: Cluster, part: Component, address: str) -> None:
    await cluster.ensure(part)
    await cluster.until(part, _connection(*address.split(":")))


def _connection(host: str, port: str) -> Callable[[], Awaitable[None]]:
    async def connect() -> None:
        async with await anyio.connect_tcp(host, int(port)):
            return

    return connect
