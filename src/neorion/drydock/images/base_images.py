"""Local replacements of base images, built from Debian's packages under the original names."""

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from anyio import to_thread

from neorion.drydock.binaries import BinaryCache
from neorion.drydock.images.image_name import ImageName
from neorion.drydock.images.store import ImageStore
from neorion.drydock.machine import ask, find
from neorion.keel.base import NotFound, Terminal, did_you_mean

# Debian 12 is the newest with Python 3.11, which the original images have.
_SUITE: Final = "bookworm"
# As in the slim originals: documentation and translations are half of a small system.
_LEAVE_OUT: Final = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")


@dataclass(frozen=True, slots=True)
class SingleBinaryImage:
    """An image of one program of this machine, in /bin, with only the libraries that it needs.

    A program `of_many_names` is called by each name that it lists. One that is `built` is a program of real clusters.
    """

    program: str
    of_many_names: bool = False
    built: bool = False

    def path(self) -> str:
        return str(BinaryCache.of().path(self.program)) if self.built else find(self.program)

    def digest(self) -> str:
        return _digest(self.program, hashlib.sha256(Path(self.path()).read_bytes()).hexdigest())

    async def write(self, folder: Path) -> Path:
        tree = folder / "tree"
        for name in ("bin", "etc", "tmp", "root"):
            (tree / name).mkdir(parents=True)
        (tree / "tmp").chmod(0o1777)
        (tree / "etc/passwd").write_text(
            "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n"
        )
        (tree / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
        program = self.path()
        shutil.copy(program, tree / "bin" / self.program)
        for library in await _libraries(program):
            (tree / library.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, tree / library.lstrip("/"))
        if self.of_many_names:
            for name in set((await ask([program, "--list"])).split()) - {self.program}:
                (tree / "bin" / name).symlink_to(self.program)
        return tree


async def _libraries(program: str) -> list[str]:
    try:
        lines = await ask(["ldd", program])
    except Terminal:
        # Static: ldd fails for such a program.
        return []
    return [word for line in lines.splitlines() for word in line.split() if word.startswith("/")]


@dataclass(frozen=True, slots=True)
class DebianImage:
    """A small Debian with these packages; `last` are final shell lines, with the new root in $1."""

    packages: tuple[str, ...] = ()
    last: tuple[str, ...] = ()

    def digest(self) -> str:
        return _digest(_SUITE, *_LEAVE_OUT, *self.packages, *self.last)

    async def write(self, folder: Path) -> Path:
        tar = folder / "tree.tar"
        words = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(self.packages)}"]
        words += [f"--dpkgopt=path-exclude={pattern}" for pattern in _LEAVE_OUT]
        words += [f"--customize-hook={line}" for line in self.last]
        await ask(["unshare", "--mount", "--propagation", "slave", *words, _SUITE, tar])
        return tar


@dataclass(frozen=True, slots=True)
class BaseImage:
    """The recipe of an image, and the full names of the images that it replaces."""

    recipe: SingleBinaryImage | DebianImage
    names: tuple[str, ...]
    config: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.names[0]


def _hub(*names: str) -> tuple[str, ...]:
    return tuple(str(ImageName.parse(name)) for name in names)


# catatonit -P sleeps for ever and reaps orphans of its pod, as a pause container must.
PAUSE: Final = BaseImage(
    SingleBinaryImage("catatonit"), ("localhost/pause:1",), ("--entrypoint", '["/bin/catatonit", "-P"]')
)
BUSYBOX: Final = BaseImage(
    SingleBinaryImage("busybox", of_many_names=True),
    _hub("busybox", "busybox:1", "busybox:1.35", "busybox:1.36"),
    ("--cmd", "sh"),
)
_DEBIAN: Final = BaseImage(
    DebianImage(("ca-certificates",)),
    _hub("debian:bookworm-slim", "debian:bookworm", "debian:12-slim", "debian:12", "debian"),
    ("--cmd", "bash"),
)
_PYTHON: Final = BaseImage(
    DebianImage(
        ("ca-certificates", "curl", "iproute2", "procps", "python3", "python3-pip", "python3-venv"),
        (
            # The original's Python belongs to the user of the image, not to a package manager.
            'rm "$1"/usr/lib/python3.*/EXTERNALLY-MANAGED',
            'ln -s /usr/bin/python3 "$1/usr/local/bin/python"',
            'ln -s /usr/bin/python3 "$1/usr/local/bin/python3"',
            'ln -s /usr/bin/pip3 "$1/usr/local/bin/pip"',
        ),
    ),
    _hub("python:3.11-slim", "python:3.11", "python:3.11-slim-bookworm", "python:3.11-bookworm"),
    ("--cmd", "python3", "--env", "LANG=C.UTF-8"),
)
_KUBECTL: Final = BaseImage(
    SingleBinaryImage("kubectl", built=True),
    ("registry.k8s.io/kubectl:v1.36.3",),
    ("--entrypoint", '["/bin/kubectl"]'),
)
STAND_INS: Final = (PAUSE, BUSYBOX, _DEBIAN, _PYTHON, _KUBECTL)


async def provide(store: ImageStore, names: Sequence[str]) -> None:
    """Creates missing images by recipe. Images without a recipe must have been built or loaded before."""
    for name in names:
        stand_in = next((one for one in STAND_INS if name in one.names), None)
        if stand_in is not None:
            await _make(store, stand_in)
        elif not await store.has(name):
            known = [known for one in STAND_INS for known in one.names]
            raise NotFound(
                "images.no_base",
                f"The image {name} does not exist on this machine, and no recipe for it exists.",
                hint=did_you_mean(name, known) or "Build it here first, or load it from an archive.",
            )


async def _make(store: ImageStore, stand_in: BaseImage) -> None:
    """Creates the image once for each recipe: it is also tagged with its recipe's digest."""
    made = f"localhost/stand-in/{ImageName.parse(stand_in.name).path.rpartition('/')[2]}:{stand_in.recipe.digest()}"
    if await store.has(made):
        return
    with tempfile.TemporaryDirectory(prefix="drydock-image-") as folder:
        tree = await stand_in.recipe.write(Path(folder))
        # Created under another name first, because the digest's name means a complete image with all its names.
        await store.commit(tree, stand_in.name, *stand_in.config)
        await to_thread.run_sync(lambda: shutil.rmtree(tree, ignore_errors=True))
    await store.buildah("tag", stand_in.name, *stand_in.names[1:], made)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
