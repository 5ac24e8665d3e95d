"""The image store of this machine, separate from those of other tools."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import msgspec

from neorion.drydock.binaries import BinaryCache
from neorion.drydock.images.image_name import ImageName
from neorion.drydock.machine import ask
from neorion.drydock.network import reaching_clusters

# A short name means Docker Hub, without a prompt for the registry.
_REGISTRIES: Final = 'unqualified-search-registries = ["docker.io"]\nshort-name-mode = "disabled"\n'
# Mounts and processes of a killed build end with these namespaces.
_ALONE: Final = (
    "unshare",
    "--mount",
    "--propagation",
    "slave",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
)


class _Listed(msgspec.Struct):
    names: list[str] | None = None


@dataclass(frozen=True, slots=True)
class ImageStore:
    """A folder of images and their layers, in the user's cache: shared by all clusters, safe for concurrent use."""

    folder: Path

    @classmethod
    def of(cls, shelf: BinaryCache) -> Self:
        return cls(shelf.cache / "images")

    async def buildah(self, *words: str | Path) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        registries = self.folder / "registries.conf"
        registries.write_text(_REGISTRIES)
        where = ["--root", self.folder / "layers", "--runroot", self.folder / "run"]
        command = [*_ALONE, "env", f"CONTAINERS_REGISTRIES_CONF={registries}", "buildah", *where, *words]
        # Pushes go to a cluster's registry; steps of a build may need the proxy.
        return await ask(command, env=reaching_clusters(os.environ))

    async def has(self, name: str) -> bool:
        listed = json.loads(await self.buildah("images", "--json") or "[]")
        return any(name in (image.names or []) for image in msgspec.convert(listed, list[_Listed]))

    async def commit(self, tree: Path, name: str, *config: str) -> None:
        """Commits an image of one layer: `tree` is a folder or a tar file."""
        container = (await self.buildah("from", "scratch")).strip()
        await self.buildah("add", "--quiet", container, tree, "/")
        await self.buildah("config", *config, container)
        await self.buildah("commit", "--quiet", "--rm", container, name)

    async def push(self, name: str, registry: str) -> None:
        """Pushes the layers that the registry lacks. Without compression, because they stay on this machine."""
        image = ImageName.parse(name)
        target = f"docker://{registry}/{image.path}:{image.tag}"
        await self.buildah("push", "--quiet", "--tls-verify=false", "--disable-compression", name, target)
