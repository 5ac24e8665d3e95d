"""One real cluster for all tests here, and two ways to call the command line: in this process, and as one."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from neorion.iris.cli import app
from neorion.keel.cli import run
from tests.iris.cli.calling import PROGRAM, Done, Iris, Start
from tools.leftovers import temporary_folder_prefix


@pytest.fixture(scope="session")
def short_folder() -> Iterator[Path]:
    """Names of sockets may have a hundred characters, and pytest's own folders use up most of them."""
    with tempfile.TemporaryDirectory(prefix=temporary_folder_prefix(), ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.fixture(scope="session")
def cluster(short_folder: Path) -> Iterator[dict[str, str]]:
    """The variables by which a command finds a cluster of one worker."""
    folder = short_folder
    env = {"XDG_STATE_HOME": str(folder / "state")}
    command = [sys.executable, "-m", "neorion.iris", "local", "--folder", str(folder / "local")]
    with subprocess.Popen(
        [*command, "--port", "0", "--workers", "1", "--leash"],
        env=os.environ | env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("https://127.0.0.1:")
        yield env | {"IRIS_CONTROLLER": address}
        process.terminate()


@pytest.fixture
def environment(cluster: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The cluster's variables, and an empty folder to stand in."""
    for name, value in cluster.items():
        monkeypatch.setenv(name, value)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def iris(environment: Path, capfd: pytest.CaptureFixture[str]) -> Iris:
    """Calls the command line in this process."""
    del environment

    def call(*args: str) -> Done:
        capfd.readouterr()
        code = run(app, args)
        out, err = capfd.readouterr()
        return Done(code, out, err)

    return call


@pytest.fixture
def start(environment: Path) -> Iterator[Start]:
    """Calls the command line as a process of its own, which does not outlive the test."""
    del environment
    begun: list[subprocess.Popen[str]] = []

    def popen(*args: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [*PROGRAM, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        return process

    yield popen
    for process in begun:
        process.kill()
        process.communicate()
