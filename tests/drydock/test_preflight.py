"""A machine that lacks something: what can run runs, the rest says what to install."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from neorion.drydock.binaries import BinaryCache
from neorion.drydock.host import UNDO
from neorion.drydock.machine import ask, find
from neorion.drydock.preflight import PROGRAMS, missing_programs, require_real_nodes
from neorion.keel.base import Denied, NotFound

NOBODY = 65534


def test_without_root_real_nodes_are_refused_with_a_way_out():
    with pytest.raises(Denied, match="require root") as caught:
        require_real_nodes(os.environ, NOBODY)
    assert "--simulated" in caught.value.hint


def test_missing_programs_are_named_with_their_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("neorion.drydock.machine.commands._ALSO", ())
    env = {"PATH": str(tmp_path)}
    assert missing_programs(env) == list(PROGRAMS)
    (tmp_path / "ip").touch(mode=0o755)
    with pytest.raises(NotFound, match="buildah, conntrack, containerd") as caught:
        require_real_nodes(env, 0)
    assert "apt-get install buildah conntrack containerd docker-registry nftables" in caught.value.hint
    assert "iproute2" not in caught.value.hint


@pytest.mark.anyio
async def test_programs_for_administrators_are_found_by_who_has_an_ordinary_path(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("PATH", "/nonexistent")
    # The one that every Debian has.
    assert "ldconfig" in await ask(["ldconfig", "--version"])
    assert find("ldconfig").endswith("/sbin/ldconfig")


@pytest.mark.anyio
async def test_what_a_missing_program_could_have_made_is_taken_for_gone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("neorion.drydock.machine.commands._ALSO", ())
    await UNDO["table"]("inet nobodys")
    await UNDO["link"]("nobodys")


def test_nothing_is_made_of_a_cluster_that_cannot_be(tmp_path: Path):
    env = {"PATH": "/nonexistent", "XDG_STATE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    for wish in (["--nodes", "1"], ["--simulated", "3:h10x8"], ["--with", "keue"]):
        command = [sys.executable, "-m", "neorion", "drydock", "up", *wish, "-o", "json"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        error = json.loads(done.stderr)["error"]
        assert done.returncode in {2, 3, 4}
        assert error["hint"]
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def poor() -> Generator[Path]:
    """A home that is nobody's."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        home.chmod(0o755)
        os.chown(home, NOBODY, NOBODY)
        yield home


def _put_programs(folder: Path) -> None:
    folder.mkdir()
    for program in ("kube-apiserver", "etcd", "kwok"):
        shutil.copy(BinaryCache.of().path(program), folder / program)
    for name in ("kube-controller-manager", "kube-scheduler", "kubectl"):
        (folder / name).symlink_to("kube-apiserver")


def _as_nobody(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": "/nonexistent", "HOME": str(home), "PIP_NO_INDEX": "1"}
    command = [sys.executable, *words]
    return subprocess.run(
        command,
        env=env,
        cwd=home,
        user=NOBODY,
        group=NOBODY,
        extra_groups=(),
        capture_output=True,
        text=True,
        check=False,
    )


CLAIM = """
import sys
from pathlib import Path
from neorion.drydock.host import UndoLog
from neorion.drydock.slots import claim_slot
claims, folder = map(Path, sys.argv[1:])
folder.mkdir()
print(claim_slot(claims, folder, UndoLog(folder)))
"""


@pytest.mark.needs("nobody")
def test_the_slot_of_somebody_whose_home_is_closed_is_let_be(poor: Path):
    claims, theirs = poor / "claims", poor / "theirs"
    claims.mkdir()
    claims.chmod(0o1777)
    (theirs / "cluster").mkdir(parents=True)
    theirs.chmod(0o700)
    (claims / "0").symlink_to(theirs / "cluster")
    claimed = _as_nobody(poor, "-c", CLAIM, str(claims), str(poor / "mine"))
    assert claimed.returncode == 0, claimed.stderr
    assert int(claimed.stdout) > 0
    assert (claims / "0").readlink() == theirs / "cluster"


@pytest.mark.needs("drydock", "nobody")
@pytest.mark.timeout(300)
def test_without_go_root_or_containerd_what_can_run_runs_and_the_rest_says_what_to_do(poor: Path):
    _put_programs(poor / "ready")

    def drydock(*words: str) -> "subprocess.CompletedProcess[str]":
        return _as_nobody(poor, "-m", "neorion", "drydock", *words, "-o", "json")

    refusals = [json.loads(drydock("up", *wish).stderr.splitlines()[-1]) for wish in (("--nodes", "1"), ())]
    assert [refusal["error"]["code"] for refusal in refusals] == ["drydock.needs_root", "drydock.no_go"]
    try:
        made = drydock("up", "--simulated", "3:h100x8", "--binaries", "ready")
        assert made.returncode == 0, made.stderr
        # Where its programs are is known to whoever asks later.
        (cluster,) = json.loads(drydock("status").stdout)
        assert (cluster["nodes"], cluster["missing"]) == ({"ready": 3, "all": 3}, [])
        kubectl = _as_nobody(poor, "-m", "neorion", "drydock", "kubectl", "get", "nodes", "-o", "name")
        assert len(kubectl.stdout.split()) == 3
    finally:
        drydock("down")
    assert json.loads(drydock("status").stdout) == []
