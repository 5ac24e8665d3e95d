"""Images on their way to a cluster."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from neorion.drydock.cluster import Cluster
from neorion.drydock.images import BuildRequest, ImageName, ImageStore, Registry, build, load
from neorion.keel.base import Conflict


async def give_build(cluster: Cluster, context: Path, tag: str, dockerfile: Path | None) -> list[str]:
    order = BuildRequest(context, ImageName.parse(tag), dockerfile)

    async def make(store: ImageStore) -> list[str]:
        return [await build(store, order)]

    return await _give(cluster, make)


async def give_archive(cluster: Cluster, archive: Path) -> list[str]:
    return await _give(cluster, lambda store: load(store, archive))


async def _give(cluster: Cluster, make: Callable[[ImageStore], Awaitable[list[str]]]) -> list[str]:
    if not cluster.layout.networked:
        raise Conflict(
            "drydock.no_registry",
            f"Cluster {cluster.name} has no real nodes, and no registry for them.",
            hint=f"Give it one: neorion drydock up --nodes 1 --name {cluster.name}",
        )
    store = ImageStore.of(cluster.shelf)
    names = await make(store)
    for name in names:
        await store.push(name, Registry.of(cluster.layout).address)
    return names
