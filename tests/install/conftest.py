"""The wheel as it is released, and environments that hold nothing but it and what it asks for."""

import subprocess
import sys
from pathlib import Path

import pytest
from uv import find_uv_bin

ROOT = Path(__file__).parents[2]


class Environment:
    """A virtual environment with the wheel in it, used as a shell would."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"

    def run(self, program: str, *args: str, code: int = 0) -> str:
        """What a program wrote, both streams. Its exit code is `code`."""
        done = subprocess.run(
            [self.bin / program, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout
        return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    uv("build", "--quiet", "--offline", "--wheel", "--out-dir", str(folder), str(ROOT))
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """What `pip install neorion` gives: no extras."""
    return environment(tmp_path_factory.mktemp("plain"), str(wheel))


@pytest.fixture(scope="session")
def server(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """What `pip install 'neorion[server]'` gives."""
    return environment(tmp_path_factory.mktemp("server"), f"{wheel}[server]")


@pytest.fixture(scope="session")
def package_index(tmp_path_factory: pytest.TempPathFactory) -> None:
    """An index that pip can install from."""
    download = ("download", "--quiet", "--no-cache-dir", "--retries", "0", "--no-deps", "click")
    folder = tmp_path_factory.mktemp("reachable")
    done = subprocess.run(
        [sys.executable, "-m", "pip", *download], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"no package source is reachable: {done.stderr[-300:]}")


def environment(folder: Path, package: str) -> Environment:
    uv("venv", "--quiet", "--python", "3.11", "--no-python-downloads", str(folder))
    install = (
        "pip",
        "install",
        "--quiet",
        "--python",
        str(folder),
        "--constraint",
        str(ROOT / "constraints.txt"),
    )
    # The cache has what the lock pins, if the lock was installed on this machine.
    try:
        uv(*install, "--offline", package)
    except subprocess.CalledProcessError:
        try:
            uv(*install, package)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no package source is reachable: {error.stderr[-300:]}")
    return Environment(folder)


def uv(*args: str) -> None:
    subprocess.run([find_uv_bin(), *args], check=True, capture_output=True, text=True)
