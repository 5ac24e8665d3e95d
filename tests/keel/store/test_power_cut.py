"""The power of the disk is cut while a store is being written to: what was acknowledged is there afterwards.

The disk is ext4 on a loop device on a file served by nbdkit through nbdfuse. Killing nbdkit loses whatever the kernel
had not yet written to it, as a power cut does.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from neorion.keel.clock import SystemClock
from neorion.keel.store import open_store
from tests.keel.store.schema import ALL, keys
from tests.keel.store.writer import writer

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.needs("nbdkit", "nbdfuse", "fusermount3"),
    pytest.mark.skipif(os.geteuid() != 0, reason="a disk of our own needs root"),
    pytest.mark.skipif(shutil.which("mkfs.ext4") is None, reason="mkfs.ext4 is not installed"),
    pytest.mark.timeout(600),
]


def run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    with path.open("wb") as file:
        file.truncate(32 << 20)
    run("mkfs.ext4", "-q", "-F", path)
    return path


@contextmanager
def powered(image: Path) -> Generator[tuple[Path, subprocess.Popen[bytes]]]:
    """The image as a mounted disk, and the process that is its power supply."""
    home = image.parent
    socket, device, disk = home / "socket", home / "device", home / "disk"
    socket.unlink(missing_ok=True)
    device.mkdir(exist_ok=True)
    disk.mkdir(exist_ok=True)
    with ExitStack() as undo:
        power = subprocess.Popen(["nbdkit", "--foreground", "--unix", socket, "file", image])
        undo.callback(power.wait)
        undo.callback(power.kill)
        # Tries again until nbdkit listens, and returns once the file can be used.
        wait = ["timeout", "10", "sh", "-c", 'until [ -S "$0" ]; do :; done', str(socket)]
        run(*wait)
        fuse = subprocess.Popen(["nbdfuse", device / "nbd", f"nbd+unix:///?socket={socket}"])
        undo.callback(fuse.wait)
        undo.callback(subprocess.run, ["fusermount3", "-u", "-z", device], check=False, capture_output=True)
        run("timeout", "10", "sh", "-c", 'until [ -s "$0" ]; do :; done', device / "nbd")
        loop = run("losetup", "--find", "--show", device / "nbd")
        undo.callback(run, "losetup", "--detach", loop)
        run("mount", loop, disk)
        undo.callback(run, "umount", "--lazy", disk)
        yield disk, power


async def cut_after(image: Path, acknowledgements: int) -> list[str]:
    """Returns what had been acknowledged when the power went."""
    told = list[str]()
    with powered(image) as (disk, power):
        async with writer("run", disk / "store.db", "100000") as writing:
            while len(told) < acknowledgements:
                told.append(await writing.line())
            power.send_signal(signal.SIGKILL)
            await writing.wait()
    return [line.removeprefix("ack ") for line in told if line.startswith("ack ")]


async def assert_nothing_is_lost(image: Path, acknowledged: set[str]) -> None:
    disk = image.parent / "disk"
    run("mount", "-o", "loop", image, disk)
    try:
        async with open_store(disk / "store.db", migrations=ALL, clock=SystemClock()) as store:
            assert await store.check() == []
            missing = acknowledged - set(await store.read(keys))
            assert not missing, f"{len(missing)} of {len(acknowledged)} acknowledged writes are gone"
    finally:
        run("umount", disk)


async def cut_again_and_again(image: Path, rounds: int) -> None:
    acknowledged = set[str]()
    for n in range(rounds):
        acknowledged.update(await cut_after(image, 20 + 37 * n % 400))
        await assert_nothing_is_lost(image, acknowledged)


async def test_power_cuts_lose_nothing_acknowledged(image: Path):
    await cut_again_and_again(image, 3)


@pytest.mark.slow
async def test_many_power_cuts_lose_nothing_acknowledged(image: Path):
    await cut_again_and_again(image, 30)
