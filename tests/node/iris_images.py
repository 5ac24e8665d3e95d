"""The images of iris in the registry of a cluster with real nodes."""

from pathlib import Path
from typing import Final

from neorion.drydock.cluster import Cluster
from neorion.drydock.images import BuildRequest, ImageName, ImageStore, Registry, build

_ROOT: Final = Path(__file__).parents[2]


async def push_images(cluster: Cluster) -> None:
    """Builds what has changed, and pushes what the cluster lacks."""
    store, registry = ImageStore.of(cluster.shelf), Registry.of(cluster.layout).address
    for name in ("controller", "worker"):
        image = ImageName.parse(f"ghcr.io/marin-community/iris-{name}")
        recipe = _ROOT / f"infra/docker/iris-{name}/Dockerfile"
        await store.push(await build(store, BuildRequest(_ROOT, image, recipe)), registry)
