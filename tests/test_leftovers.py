"""Killed runs leave nothing to the next one, and live runs are never touched."""

import fcntl
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest

from tools import leftovers
from tools.leftovers import MARK, remove_leftovers

ROOT = Path(__file__).parent.parent
# A run, and a program that it starts in a session of its own.
RUN = """
import subprocess, sys, threading
from tools import leftovers
leftovers.mark_this_run()
more = dict(pair.split("=") for pair in sys.argv[1:])
import os
child = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait(600)"],
    start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=os.environ | more)
print(child.pid, flush=True)
threading.Event().wait(600)
"""


class Run:
    """A test run in a process of its own, with one program that outlives it."""

    def __init__(self, *more: str) -> None:
        env = {name: value for name, value in os.environ.items() if name != MARK} | {"PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", RUN, *more]
        self._process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.program = int(self._process.stdout.readline())
        self.pid = self._process.pid

    def kill(self) -> None:
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def end(self) -> None:
        self.kill()
        with suppress(ProcessLookupError):
            os.kill(self.program, signal.SIGKILL)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pid: int) -> None:
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        select.select([handle], [], [], 60)
        os.close(handle)


@pytest.fixture
def run() -> Generator[Run]:
    made = Run()
    yield made
    made.end()


def test_a_program_of_a_killed_run_is_ended(run: Run):
    run.kill()
    assert runs(run.program)
    assert f"process {run.program}" in remove_leftovers()
    wait_until_gone(run.program)
    assert not runs(run.program)


def test_a_program_of_a_live_run_is_left_alone(run: Run):
    removed = remove_leftovers()
    assert f"process {run.program}" not in removed
    assert runs(run.program)


def test_a_process_that_has_the_number_of_a_dead_one_does_not_keep_its_run_alive():
    started = leftovers._started(os.getpid())
    assert not leftovers._is_over(f"{os.getpid()}:{started}")
    assert leftovers._is_over(f"{os.getpid()}:{int(started) - 1}")


def test_a_process_without_a_mark_is_not_ours():
    assert not leftovers._is_over("")


def test_a_cluster_of_a_killed_run_goes_with_its_processes(tmp_path: Path):
    folder = tmp_path / "half-made"
    folder.mkdir()
    run = Run(f"NEORION_DRYDOCK_CLUSTER={folder}", "NEORION_DRYDOCK_PART=etcd")
    try:
        run.kill()
        assert f"cluster {folder}" in remove_leftovers()
        assert not runs(run.program)
        assert not folder.exists()
    finally:
        run.end()


def test_a_shared_cluster_that_someone_uses_stays_though_the_run_that_made_it_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / "shared"
    folder.mkdir()
    for purpose in ("gate", "users"):
        (tmp_path / f"neorion-shared.{purpose}").touch()
    run = Run(f"NEORION_DRYDOCK_CLUSTER={folder}", "NEORION_DRYDOCK_PART=etcd")
    try:
        run.kill()
        with (tmp_path / "neorion-shared.users").open("w") as users:
            fcntl.flock(users, fcntl.LOCK_SH)
            assert f"cluster {folder}" not in remove_leftovers()
            assert runs(run.program)
        assert f"cluster {folder}" in remove_leftovers()
        assert not folder.exists()
    finally:
        run.end()


@pytest.mark.parametrize("kind", ["neorion-test", "iris"])
def test_a_folder_of_a_killed_run_is_removed(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine, theirs = (tmp_path / f"{kind}-{pid}-abc" for pid in (os.getpid(), run.pid))
    others = [tmp_path / name for name in (f"{kind}-{run.pid}", f"{kind}-abc", f"other-{run.pid}-abc")]
    for folder in (mine, theirs, *others):
        folder.mkdir()
    run.kill()
    assert f"folder {theirs}" in remove_leftovers()
    assert set(tmp_path.iterdir()) == {mine, *others}


def test_a_folder_that_a_live_process_was_given_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"iris-{run.pid}-abc"
    folder.mkdir()
    run.kill()
    waits = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", waits, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as user:
        assert user.stdout is not None
        assert user.stdout.readline() == b"\n"
        remove_leftovers()
        assert folder.exists()
        user.communicate()
    remove_leftovers()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("folder", "over"),
    [
        ("home/neorion/drydock/test-0123abcd-DEAD", True),
        ("home/neorion/drydock/test-0123abcd-LIVE", False),
        ("home/neorion/drydock/test-0123abcd", False),
        ("home/neorion/drydock/mine", False),
        ("pytest-of-root/pytest-DEAD/test_a0/neorion/drydock/crash", True),
        ("pytest-of-root/pytest-LIVE/test_a0/neorion/drydock/crash", False),
    ],
)
def test_whose_a_cluster_without_processes_is(tmp_path: Path, run: Run, folder: str, *, over: bool):
    run.kill()
    for word, pid in (("DEAD", run.pid), ("LIVE", os.getpid())):
        folder = folder.replace(word, str(pid))
        lock = tmp_path / f"pytest-of-root/pytest-{pid}/.lock"
        lock.parent.mkdir(parents=True)
        lock.write_text(str(pid))
    assert leftovers._was_of_a_dead_run(tmp_path / folder) == over
