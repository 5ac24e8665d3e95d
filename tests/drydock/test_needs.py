"""A machine that lacks something: what can run runs, the rest says what to install."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from neorion.drydock.needs import PROGRAMS, missing_programs, require_real_nodes
from neorion.keel.base import Denied, NotFound

NOBODY = 65534


def test_without_root_real_nodes_are_refused_with_a_way_out():
    with pytest.raises(Denied, match="rights of root") as caught:
        require_real_nodes(os.environ, NOBODY)
    assert "--simulated" in caught.value.hint


def test_missing_programs_are_named_with_their_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("neorion.drydock.needs._ALSO", ())
    env = {"PATH": str(tmp_path)}
    assert missing_programs(env) == list(PROGRAMS)
    (tmp_path / "ip").touch(mode=0o755)
    with pytest.raises(NotFound, match="buildah, conntrack, containerd") as caught:
        require_real_nodes(env, 0)
    assert "apt-get install buildah conntrack containerd docker-registry nftables" in caught.value.hint
    assert "iproute2" not in caught.value.hint


def test_nothing_is_made_of_a_cluster_that_cannot_be(tmp_path: Path):
    env = {"PATH": "/nonexistent", "XDG_STATE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    for wish in (["--nodes", "1"], ["--simulated", "3:h10x8"], ["--with", "keue"]):
        command = [sys.executable, "-m", "neorion", "drydock", "up", *wish, "-o", "json"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        error = json.loads(done.stderr)["error"]
        assert done.returncode in {2, 3, 4}
        assert error["hint"]
    assert list(tmp_path.iterdir()) == []
