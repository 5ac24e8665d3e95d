"""Images for tests, written without any engine: archives as `docker save` writes them, of one layer."""

import hashlib
import io
import json
import platform
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools import system

ROOT = Path(__file__).parents[2]
# The Python of this test with its libraries, in place of an image that takes minutes to build.
PLACES = ("/usr/lib", "/lib", "/lib64", str(ROOT), sys.base_prefix)
TASK_IMAGE = "docker.io/iris/task:test"
# The same for a user without rights.
USER_IMAGE = "docker.io/iris/user:test"
# Without Python.
BARE_IMAGE = "docker.io/iris/bare:test"
PAUSE_IMAGE = "localhost/pause:1"
_ARCHITECTURES = {"aarch64": "arm64"}


@dataclass(frozen=True)
class Image:
    """Programs of this machine, scripts, links, the command that the image runs, and its user."""

    name: str
    programs: Sequence[str] = ()
    scripts: dict[str, str] = field(default_factory=dict[str, str])
    links: dict[str, str] = field(default_factory=dict[str, str])
    entrypoint: Sequence[str] = ()
    user: str = ""

    def archive(self) -> bytes:
        layer = self._layer()
        config = json.dumps(
            {
                "architecture": _ARCHITECTURES.get(platform.machine(), "amd64"),
                "os": "linux",
                "config": {"Entrypoint": list(self.entrypoint), "User": self.user},
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
            }
        ).encode()
        manifest = [{"Config": "config.json", "RepoTags": [self.name], "Layers": ["layer.tar"]}]
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w") as tar:
            _add(tar, "config.json", config)
            _add(tar, "layer.tar", layer)
            _add(tar, "manifest.json", json.dumps(manifest).encode())
        return file.getvalue()

    def _layer(self) -> bytes:
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w") as tar:
            for folder, mode in {"bin": 0o755, "etc": 0o755, "tmp": 0o1777, "usr/lib": 0o755}.items():
                entry = tarfile.TarInfo(folder)
                entry.type, entry.mode = tarfile.DIRTYPE, mode
                tar.addfile(entry)
            _add(tar, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n")
            _add(tar, "etc/group", b"root:x:0:\nnogroup:x:65534:\n")
            for program in self.programs:
                _add(tar, f"bin/{program}", Path(_found(program)).read_bytes(), 0o755)
            for name, text in self.scripts.items():
                _add(tar, f"bin/{name}", text.encode(), 0o755)
            for name, target in self.links.items():
                entry = tarfile.TarInfo(f"bin/{name}")
                entry.type, entry.linkname = tarfile.SYMTYPE, target
                tar.addfile(entry)
        return file.getvalue()


def _found(program: str) -> str:
    found = system.find(program)
    assert found is not None
    return found


def _add(tar: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    tar.addfile(entry, io.BytesIO(data))


def images() -> tuple[Image, ...]:
    names = subprocess.run([_found("busybox"), "--list"], capture_output=True, check=True, text=True).stdout
    shell = {name: "busybox" for name in names.split() if name != "busybox"}
    # A link would hide from Python which environment it belongs to.
    python = {"python": f'#!/bin/sh\nexec {sys.executable} "$@"\n'}
    return (
        Image(TASK_IMAGE, ("busybox",), python, shell),
        Image(USER_IMAGE, ("busybox",), python, shell, user="65534:65534"),
        Image(BARE_IMAGE, ("busybox",), links=shell),
        Image(PAUSE_IMAGE, ("catatonit",), entrypoint=("/bin/catatonit", "-P")),
    )
