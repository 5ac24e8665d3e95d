"""Container engines that a run of tests has for itself: nothing of them is left when they end."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from neorion.keel.clock import SystemClock
from tests.engines.image_archive import PAUSE_IMAGE, images
from tools import leftovers, system

_ALONE = Path(__file__).with_name("alone.sh")
_CGROUPS = Path("/sys/fs/cgroup")
_START_S = 60
_CONTAINERD = """\
version = 2
root = "{folder}/root"
state = "{folder}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt"]
[grpc]
address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
# Not every root may raise a process above what it has itself.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
# In place of NVIDIA's, which takes the GPUs from a variable.
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
"""


@dataclass(frozen=True)
class PrivateEngine:
    """An engine that answers at its socket."""

    socket: Path
    folder: Path


@contextmanager
def private_containerd() -> Generator[PrivateEngine]:
    with _folder() as folder:
        engine = PrivateEngine(folder / "socket", folder)
        config = folder / "config.toml"
        config.write_text(_CONTAINERD.format(folder=folder, socket=engine.socket, pause=PAUSE_IMAGE))
        with _alone(engine, ["containerd", "--config", str(config)]):
            ctr = ["ctr", "--address", str(engine.socket), "--namespace", "k8s.io"]
            _until(lambda: _works([*ctr, "version"]), folder)
            for image in images():
                _run([*ctr, "images", "import", "-"], image.archive())
            yield engine


@contextmanager
def private_docker() -> Generator[PrivateEngine]:
    with _folder() as folder:
        engine = PrivateEngine(folder / "socket", folder)
        command = ["dockerd", f"--host=unix://{engine.socket}", "--bridge=none", "--iptables=false"]
        command += ["--ip6tables=false", f"--data-root={folder}/root", f"--exec-root={folder}/run"]
        with _alone(engine, [*command, f"--pidfile={folder}/pid"]):
            curl = ["curl", "--silent", "--fail-with-body", "--unix-socket", str(engine.socket)]
            _until(lambda: _works([*curl, "http://docker/_ping"]), folder)
            for image in images():
                tar = ["--header", "Content-Type: application/x-tar"]
                _run(
                    [*curl, *tar, "--data-binary", "@-", "http://docker/images/load?quiet=1"], image.archive()
                )
            yield engine


@contextmanager
def _folder() -> Generator[Path]:
    # The path of a socket has a hundred letters, and pytest's own folders are longer.
    folder = Path(tempfile.mkdtemp(prefix=leftovers.temporary_folder_prefix()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _alone(engine: PrivateEngine, command: Sequence[str]) -> Generator[None]:
    # Of the run, so that what a killed run leaves is known by its name (tools/leftovers.py).
    parent, name = f"iris-{os.getpid()}", engine.folder.name
    with (engine.folder / "log").open("wb") as log:
        path = os.pathsep.join([os.environ["PATH"], *system.EXTRA_PATH])
        process = subprocess.Popen(
            ["/bin/sh", str(_ALONE), parent, name, *command],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PATH": path},
        )
    try:
        yield
    finally:
        _kill(process)
        assert _is_removed(f"{parent}/{name}")
        _is_removed(parent)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kills the first process of the namespace. It is gone only when all others are."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    for child in children.read_text().split() if process.poll() is None else ():
        os.kill(int(child), signal.SIGKILL)
    process.wait(timeout=_START_S)


def _is_removed(group: str) -> bool:
    tops = [_CGROUPS / group, *_CGROUPS.glob(f"*/{group}")]
    for top in tops:
        for folder, _, _ in os.walk(top, topdown=False):
            with suppress(OSError):
                Path(folder).rmdir()
    return not any(top.exists() for top in tops)


def _until(holds: Callable[[], bool], folder: Path) -> None:
    """Each look starts a program, so the loop is not a busy one."""
    clock = SystemClock()
    until = clock.monotonic() + _START_S
    while not holds():
        if clock.monotonic() > until:
            pytest.fail((folder / "log").read_text(errors="replace")[-2000:])


def _works(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _run(command: Sequence[str], given: bytes) -> None:
    subprocess.run(command, input=given, capture_output=True, check=True)
