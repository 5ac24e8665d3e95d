"""Another user of the machine reads nothing of what a cluster keeps: logs, values, records."""

import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from neorion.iris.client import IrisClient
from tests.navarch.test_smoke import FAKE, serving

pytestmark = [pytest.mark.attack("foreign-reader"), pytest.mark.timeout(180)]
MIB = 1024 * 1024


def exposed(folder: Path) -> Iterator[tuple[str, str]]:
    """Files and folders that other users reach, from this folder down."""
    mode = folder.stat().st_mode & 0o777
    if mode & 0o077:
        yield str(folder), oct(mode)
    # Below a folder that nobody else may enter, nothing can be reached.
    if folder.is_dir() and mode & 0o011:
        for path in folder.iterdir():
            yield from exposed(path)


@contextmanager
def leashed(state: Path) -> Generator[str]:
    """A cluster that ends with its workers when its standard input ends."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "neorion.iris",
        "local",
        "--leash",
        "--port",
        "0",
        "--workers",
        "1",
    ]
    with subprocess.Popen(
        [*command, "--folder", state], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(timeout=60)


SHARED = """
platform: { local: {} }
controller: { local: {} }
auth: { isolation: none, users: { bob: { token: "${BOB_TOKEN}" } } }
scale_groups:
  none:
    accelerator_type: cpu
    accelerator_variant: cpu
    resources: { cpu: 4, ram: 8GB, gpu_count: 0 }
    max_slices: 1
    slice_template: { local: {} }
"""


@pytest.mark.parametrize("erased", [True, False])
def test_the_environment_of_a_controller_holds_no_token(tmp_path: Path, *, erased: bool) -> None:
    (tmp_path / "cluster.yaml").write_text(SHARED)
    program = "import sys\nfrom neorion.iris.app import commands, main\n"
    if not erased:
        program += "commands.erase_from_environment = lambda _: None\n"
    program += "sys.exit(main.main(sys.argv[1:]))"
    words = [
        "local",
        "--leash",
        "--port",
        "0",
        "--folder",
        str(tmp_path),
        "--config",
        str(tmp_path / "cluster.yaml"),
    ]
    with subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"BOB_TOKEN": "a-token-of-bob"},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith(b"https://")
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
            assert (b"a-token-of-bob" in environment) is not erased
            assert b"PATH=" in environment
        finally:
            process.stdin.close()
            process.wait(timeout=60)


def test_nothing_that_a_cluster_keeps_is_open_to_other_users(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    state = tmp_path / "state"
    # A folder that an administrator has made, as open as usual.
    state.mkdir(mode=0o755)
    for name in ("logs", "slices"):
        # Of a version that left them open.
        (state / name).mkdir(mode=0o755)
    with leashed(state) as url:
        token = (state / "admin.token").read_text()
        with IrisClient.remote(url, token=token) as client:
            logged = client.submit(lambda: os.write(1, b"a log\n") * b"x" * MIB, "job")
            assert client.wait(logged, timeout=90)
        assert {"logs", "blobs", "slices"} <= {path.name for path in state.iterdir()}
        assert [one for one in exposed(state) if one[0] != str(state)] == []


def test_nothing_that_navarch_keeps_is_open_to_other_users(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with serving(tmp_path, FAKE.replace("server:", f"server:\n  state_dir: {tmp_path / 'state'}", 1)):
        kept = {path.name for path in (tmp_path / "state").rglob("*") if path.is_file()}
        assert any(name.startswith("navarch.db") for name in kept), kept
        assert list(exposed(tmp_path / "state")) == []


def test_what_is_open_is_found(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "log").write_text("secret")
    (tmp_path / "log").chmod(0o644)
    assert (str(tmp_path / "log"), "0o644") in list(exposed(tmp_path))
