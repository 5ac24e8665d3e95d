"""Images on their way to a cluster."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from neorion.drydock.cli.session import run
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager
from neorion.drydock.images import BuildRequest, ImageName, ImageStore, Registry, build, load
from neorion.keel.base import Conflict
from neorion.keel.cli.kit import Output


async def _give_build(cluster: Cluster, context: Path, tag: str, dockerfile: Path | None) -> list[str]:
    order = BuildRequest(context, ImageName.parse(tag), dockerfile)

    async def make(store: ImageStore) -> list[str]:
        return [await build(store, order)]

    return await _push(cluster, make)


async def _give_archive(cluster: Cluster, archive: Path) -> list[str]:
    return await _push(cluster, lambda store: load(store, archive))


async def _push(cluster: Cluster, make: Callable[[ImageStore], Awaitable[list[str]]]) -> list[str]:
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


def build_image_command(out: Output, context: Path, *, tag: str, dockerfile: Path | None, name: str) -> None:
    cluster = ClusterManager.of(out.env).find(name)
    names = run(out, f"image {tag}", lambda tell: _give_build(cluster, context, tag, dockerfile))  # noqa: ARG005 -- buildah reports no progress
    out.text("".join(f"{each}\n" for each in names))


def load_image_command(out: Output, archive: Path, name: str) -> None:
    cluster = ClusterManager.of(out.env).find(name)
    names = run(out, f"images of {archive.name}", lambda tell: _give_archive(cluster, archive))  # noqa: ARG005 -- as above
    out.text("".join(f"{each}\n" for each in names))
