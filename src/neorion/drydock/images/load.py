"""Loads images from archives, as `docker save`, `buildah push` or `skopeo copy` write them."""

import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from neorion.drydock.images.image_name import ImageName
from neorion.drydock.images.store import ImageStore
from neorion.keel.base import Invalid

_OCI_NAME: Final = "org.opencontainers.image.ref.name"


class _Saved(msgspec.Struct):
    """An entry of Docker's manifest.json."""

    names: list[str] | None = msgspec.field(default=None, name="RepoTags")


class _Manifest(msgspec.Struct):
    annotations: dict[str, str] = {}


class _Index(msgspec.Struct):
    """OCI's index.json."""

    manifests: list[_Manifest]


@dataclass(frozen=True, slots=True)
class _Archive:
    transport: str
    names: Sequence[str]


async def load(store: ImageStore, path: Path) -> list[str]:
    """Loads the image into the store and returns its full names."""
    archive = _read(path)
    names = [str(ImageName.parse(name)) for name in archive.names]
    if not names:
        raise Invalid(
            "images.no_name",
            f"The image in {path} has no name.",
            hint="Write the archive with a name: buildah push IMAGE oci-archive:FILE:NAME.",
        )
    image = (await store.buildah("pull", "--quiet", f"{archive.transport}:{path}")).split()[-1]
    await store.buildah("tag", image, *names)
    return names


def _read(path: Path) -> _Archive:
    try:
        with tarfile.open(path) as tar:
            if "manifest.json" in tar.getnames():
                saved = msgspec.json.decode(_member(tar, "manifest.json"), type=list[_Saved])
                return _Archive("docker-archive", [name for image in saved for name in image.names or []])
            index = msgspec.json.decode(_member(tar, "index.json"), type=_Index)
            named = (manifest.annotations.get(_OCI_NAME) for manifest in index.manifests)
            return _Archive("oci-archive", [name for name in named if name])
    except (OSError, KeyError, tarfile.TarError, msgspec.MsgspecError) as error:
        raise Invalid(
            "images.bad_archive",
            f"{path} is not an archive of an image.",
            hint="Give a tar file as docker save or buildah push oci-archive: writes it.",
        ) from error


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    if file is None:
        raise KeyError(name)
    return file.read()
