"""The console Pod, and the commands that run in it."""

import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from neorion.devservers.decide.console import (
    console_pod,
    is_over,
    is_running,
    session_command,
    signal_command,
    stuck,
    unscheduled,
)
from neorion.drydock.binaries.products import product_of
from neorion.keel.kube.core import Pod

ROOT = Path(__file__).parent.parent.parent.parent


def a_pod(**status: object) -> Pod:
    return msgspec.convert({"metadata": {"name": "console"}, "status": status}, Pod)


def test_a_console_runs_as_its_user_and_as_nothing_more():
    spec = console_pod("ann", "image")["spec"]
    assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == ("user-ann", False)
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    (account,) = [one["projected"]["sources"] for one in spec["volumes"] if one["name"] == "account"]
    (token,) = [one["serviceAccountToken"] for one in account if "serviceAccountToken" in one]
    assert token["expirationSeconds"] <= 3600
    assert {next(iter(one.keys() - {"name"})) for one in spec["volumes"]} == {"emptyDir", "projected"}


def test_the_state_of_a_console_is_read_from_its_pod():
    ready = [{"type": "Ready", "status": "True"}]
    assert is_running(a_pod(phase="Running", conditions=ready))
    assert not is_running(a_pod(phase="Running"))
    assert is_over(a_pod(phase="Succeeded"))
    assert is_over(msgspec.convert({"metadata": {"deletionTimestamp": "2026-03-01T00:00:00Z"}}, Pod))
    assert not is_over(a_pod(phase="Pending"))
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    assert (
        stuck(a_pod(containerStatuses=[{"name": "console", "state": waiting}])) == "ErrImagePull: not found"
    )
    creating = {"waiting": {"reason": "ContainerCreating"}}
    assert stuck(a_pod(containerStatuses=[{"name": "console", "state": creating}])) == ""
    full = [{"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}]
    assert unscheduled(a_pod(conditions=full)) == "0/2 nodes are available"


@pytest.mark.parametrize(
    ("command", "subsystem", "code", "out"),
    [
        ("echo a b; exit 3", None, 3, "a b\n"),
        ("echo '$HOME' \"a'b\"", None, 0, "$HOME a'b\n"),
        (None, None, 0, "typed\n"),
        (None, "unknown", 127, ""),
        (None, "-c id", 127, ""),
    ],
)
def test_a_session_runs_its_command_word_for_word(
    command: str | None, subsystem: str | None, code: int, out: str
):
    argv = session_command("ssh-1", command, subsystem, {"LC_ALL": "C", "TERM": "xterm", "PATH": "/x"})
    done = subprocess.run(argv, input="echo typed\n", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, out)
    assert "PATH=/x" not in argv


def test_a_signal_reaches_the_processes_of_its_session_alone():
    started = [
        subprocess.Popen(session_command(f"ssh-{name}", "exec sleep 100", None, {})) for name in (1, 11, 2)
    ]
    try:
        subprocess.run(signal_command("ssh-1", "TERM"), check=True)
        assert started[0].wait(20) == -15
        assert [one.poll() for one in started[1:]] == [None, None]
    finally:
        for one in started:
            one.kill()
            one.wait()


@pytest.mark.parametrize("has_z", [True, False])
def test_a_signal_needs_few_programs_however_many_processes_there_are(tmp_path: Path, *, has_z: bool):
    """Each program takes milliseconds, so that two for each process outlast the caller on a busy node."""
    runs, real = tmp_path / "runs", shutil.which("grep")
    refusal = "" if has_z else 'case "$1" in *z*) exit 2 ;; esac'
    (tmp_path / "grep").write_text(f'#!/bin/sh\necho >>"{runs}"\n{refusal}\nexec {real} "$@"\n')
    (tmp_path / "grep").chmod(0o755)
    with subprocess.Popen(session_command("ssh-5", "exec sleep 100", None, {})) as started:
        env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        subprocess.run(signal_command("ssh-5", "TERM"), check=True, env=env)
        assert started.wait(20) == -15
    assert not has_z or len(runs.read_text().splitlines()) == 2


def test_the_console_has_the_kubectl_of_the_clusters_that_it_is_tested_with():
    recipe = (ROOT / "infra/docker/devservers-console/Dockerfile").read_text()
    assert f"registry.k8s.io/kubectl:{product_of('kubectl').version}\n" in recipe
