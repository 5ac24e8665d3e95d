"""What a cluster is fitted out with before real nodes can join: a network, a registry, DNS, storage."""

from collections.abc import Awaitable, Callable

import anyio

from neorion.drydock.binaries import Tell, build, hush
from neorion.drydock.cluster import Cluster
from neorion.drydock.dns import DNS_PROGRAMS, dns_part, publish_dns
from neorion.drydock.host import Part
from neorion.drydock.images import PAUSE, ImageStore, Registry, provide
from neorion.drydock.layout import Door, Layout
from neorion.drydock.network import raise_bridge


def image_store(cluster: Cluster) -> ImageStore:
    """In the user's cache: base images outlive clusters."""
    return ImageStore(cluster.shelf.cache / "images")


def registry(layout: Layout) -> Registry:
    return Registry(f"{layout.addresses.host}:{layout.port(Door.REGISTRY)}", layout.data("registry"))


async def lay_network(cluster: Cluster) -> None:
    """The bridge. Before the control plane starts, so that the API server can listen on it."""
    bridge = cluster.layout.addresses.bridge
    cluster.ledger.record("cgroup", bridge)
    cluster.ledger.record("table", f"inet {bridge}")
    cluster.ledger.record("link", bridge)
    await raise_bridge(cluster.layout.addresses)


async def fit_out(cluster: Cluster, tell: Tell = hush) -> None:
    """Starts what does not run of the services that nodes need. After the control plane; safe to repeat."""
    layout = cluster.layout
    for product in cluster.shelf.missing((*DNS_PROGRAMS, "kubelet")):
        await build(product, cluster.shelf, tell)
    tell("starting the registry and DNS")
    images = registry(layout)
    await _serve(cluster, Part("registry", images.command()), *images.address.split(":"))
    store = image_store(cluster)
    await provide(store, [PAUSE.name])
    await store.push(PAUSE.name, images.address)
    await _serve(cluster, dns_part(layout, cluster.pki, cluster.shelf), str(layout.addresses.host), "53")
    async with cluster.api() as api:
        await publish_dns(layout, api)


async def _serve(cluster: Cluster, part: Part, host: str, port: str) -> None:
    await cluster.ensure(part)
    await cluster.until(part, _connection(host, int(port)))


def _connection(host: str, port: int) -> Callable[[], Awaitable[None]]:
    async def connect() -> None:
        async with await anyio.connect_tcp(host, port):
            return

    return connect
