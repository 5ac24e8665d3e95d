"""drydock killed at any moment, by the kernel, between two system calls: `down` leaves nothing behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from neorion.drydock.clusters import ClusterManager
from tests.drydock.traces import traces

NAME = "crash"
# A system call of drydock's and which of them is the last it makes; it does not make that one.
Point = tuple[str, int]


def _drydock(home: Path, *args: str, until: Point | None = None) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "neorion", "drydock", *args, "--name", NAME]
    if until is not None:
        call, count = until
        # Children go on as they were: only drydock itself is killed.
        follow = ["-f"] if args[0] == "down" else []
        kill = f"inject={call}:signal=KILL:when={count}"
        command = ["strace", "-qq", *follow, "-o", os.devnull, "-e", f"trace={call}", "-e", kill, *command]
    env = {**os.environ, "XDG_STATE_HOME": str(home)}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def _killed_and_removed(home: Path, up: Point, down: Point | None, *wishes: str) -> None:
    yard = ClusterManager.of({**os.environ, "XDG_STATE_HOME": str(home)})
    killed = _drydock(home, "up", *wishes, until=up)
    layout = next((cluster.layout for cluster in yard.clusters()), None)
    interrupted = _drydock(home, "down", until=down) if down is not None else killed
    done = _drydock(home, "down")
    # Last of all, so that a test that fails leaves nothing either.
    assert (killed.returncode, interrupted.returncode) == (-signal.SIGKILL, -signal.SIGKILL), killed.stderr
    # Without a slot there is nothing yet that could be outside the folder.
    left = traces(layout) if layout is not None else []
    assert (done.returncode, left, yard.names()) == (0, [], []), done.stderr


@pytest.mark.needs("drydock", "strace")
@pytest.mark.timeout(480)
@pytest.mark.parametrize(
    ("up", "down"),
    [
        (("mkdir", 2), None),
        (("rename", 8), None),
        # Two parts run, of which the second is not yet known to be ready.
        (("clone3", 4), ("pidfd_send_signal", 2)),
    ],
    ids=str,
)
def test_nothing_is_left_of_a_control_plane(tmp_path: Path, up: Point, down: Point | None):
    _killed_and_removed(tmp_path, up, down)


CONTROL = [
    *(("mkdir", n) for n in range(1, 9)),
    *(("rename", n) for n in range(1, 28, 3)),
    *(("clone3", n) for n in range(1, 7)),
    *(("connect", n) for n in range(2, 9, 2)),
]
REAL = [
    *(("vfork", n) for n in range(1, 11)),
    *(("clone3", n) for n in range(7, 19, 2)),
    *(("mkdir", n) for n in range(10, 80, 9)),
    *(("connect", n) for n in range(5, 14, 4)),
]


@pytest.mark.slow
@pytest.mark.needs("drydock", "strace")
@pytest.mark.timeout(480)
@pytest.mark.parametrize("up", CONTROL, ids=str)
def test_nothing_is_left_of_simulated_nodes(tmp_path: Path, up: Point):
    _killed_and_removed(tmp_path, up, None, "--simulated", "5:h100x8")


@pytest.mark.slow
@pytest.mark.needs(
    "drydock", "root", "strace", "containerd", "runc", "nft", "ip", "buildah", "docker-registry", "host-local"
)
@pytest.mark.timeout(480)
@pytest.mark.parametrize("up", REAL, ids=str)
def test_nothing_is_left_of_real_nodes(tmp_path: Path, up: Point):
    _killed_and_removed(tmp_path, up, None, "--nodes", "1")


@pytest.mark.slow
@pytest.mark.needs(
    "drydock", "root", "strace", "containerd", "runc", "nft", "ip", "buildah", "docker-registry", "host-local"
)
@pytest.mark.timeout(480)
@pytest.mark.parametrize(
    "down",
    [("pidfd_send_signal", 1), ("pidfd_send_signal", 6), ("truncate", 1), ("rmdir", 30), ("unlinkat", 40)],
    ids=str,
)
def test_a_down_that_is_killed_is_finished_by_the_next(tmp_path: Path, down: Point):
    _killed_and_removed(tmp_path, ("clone3", 18), down, "--nodes", "1")
