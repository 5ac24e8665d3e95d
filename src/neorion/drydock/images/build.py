"""Builds an image from a Dockerfile, without a Docker engine."""

import configparser
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from neorion.drydock.images.base_images import provide
from neorion.drydock.images.dockerfile import bases
from neorion.drydock.images.image_name import ImageName
from neorion.drydock.images.store import ImageStore
from neorion.keel.base import NotFound

_CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
_PIP_CONFIG: Final = Path("/etc/pip.conf")


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """A build: the folder, its Dockerfile, and the name of the image."""

    context: Path
    name: ImageName
    dockerfile: Path | None = None
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def recipe(self) -> Path:
        return self.dockerfile or self.context / "Dockerfile"


async def build(store: ImageStore, order: BuildRequest) -> str:
    """Builds into the store and returns the image's full name. Base images are local replacements or earlier builds."""
    if not order.recipe.is_file():
        raise NotFound(
            "images.no_dockerfile",
            f"The file {order.recipe} does not exist.",
            hint="Name the folder that holds the Dockerfile, or the Dockerfile itself.",
        )
    await provide(store, bases(order.recipe.read_text(), order.arguments))
    name = str(order.name)
    with tempfile.TemporaryDirectory(prefix="drydock-build-") as folder:
        mounts = [f"--volume={source}:{target}:ro" for source, target in _mounts(Path(folder))]
        arguments = [f"--build-arg={key}={value}" for key, value in order.arguments.items()]
        # The machine's network and no namespaces of a runtime: nothing to set up, and nothing to clean up.
        how = ["--pull-never", "--isolation=chroot", "--network=host", "--layers", "--force-rm"]
        await store.buildah(
            "bud", "--quiet", *how, *mounts, *arguments, "--tag", name, "--file", order.recipe, order.context
        )
    return name


def _mounts(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Mounts through which a build step reaches the network as this machine does. They are not part of the image."""
    if _CERTIFICATES.is_file():
        yield _CERTIFICATES, _CERTIFICATES
    settings = pip_settings(os.environ, [_PIP_CONFIG, Path("~/.config/pip/pip.conf").expanduser()])
    if settings:
        config = configparser.ConfigParser(interpolation=None)
        config["global"] = settings
        with (folder / "pip.conf").open("w") as file:
            config.write(file)
        yield folder / "pip.conf", _PIP_CONFIG


# Settings of package sources and trust, but not of this machine's folders.
_PIP_SETTINGS: Final = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout")


def pip_settings(env: Mapping[str, str], files: list[Path]) -> dict[str, str]:
    """The machine's settings as pip reads them: later files win, and the environment wins over files."""
    config = configparser.ConfigParser(interpolation=None)
    config.read(files)
    found = {
        word: value
        for word in _PIP_SETTINGS
        if (
            value := env.get(f"PIP_{word.upper().replace('-', '_')}")
            or config.get("global", word, fallback="")
        )
    }
    # pip has its own certificates; the mounted ones are those that this machine trusts.
    return found | ({"cert": str(_CERTIFICATES)} if _CERTIFICATES.is_file() else {})
