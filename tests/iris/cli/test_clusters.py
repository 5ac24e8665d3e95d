"""Clusters on this machine: started, found again, stopped; and what is said when there is none."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from neorion.iris.cli import app, local_cluster
from neorion.iris.cli.commands import local_cluster_impl
from neorion.iris.client import IrisClient
from neorion.keel.cli import Exit, run
from neorion.keel.telemetry.setup import FILE_BYTES_MAX
from tests.iris.cli.calling import PROGRAM

NOWHERE = "http://127.0.0.1:9"


def shown(capfd: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    capfd.readouterr()
    code = run(app, [*args])
    out, err = capfd.readouterr()
    return code, out, err


@pytest.fixture
def folder(short_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_STATE_HOME", str(short_folder / "other"))
    place = Path(tempfile.mkdtemp(dir=short_folder))
    yield place
    run(app, ["cluster", "stop", "--folder", str(place), "-q"])


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("cluster status", Exit.UNREACHABLE),
        ("job list", Exit.UNREACHABLE),
        ("worker list", Exit.UNREACHABLE),
        ("why x", Exit.UNREACHABLE),
        ("run --no-bundle -- true", Exit.NOT_STARTED),
    ],
)
def test_a_controller_that_does_not_answer_is_told_with_the_way_to_one(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str, code: int
):
    monkeypatch.setenv("IRIS_CONTROLLER", NOWHERE)
    told = shown(capfd, *command.split())
    assert told[:2] == (code, "")
    assert f"No controller answers at {NOWHERE}." in told[2]
    assert "iris cluster start --local --detach" in told[2]


def _meeting_place() -> str:
    """Where a gang meets, if one can be met there."""
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if os.environ["RANK"] == "0":
        socket.create_server((address, port)).close()
    return address


def _fill(log: Path) -> int:
    """A log that has passed its limit, with the last words of an earlier start."""
    log.write_text("error: Something else.\nhint: Do something else.\ncode: other\n")
    os.truncate(log, FILE_BYTES_MAX + 1)
    return log.stat().st_size


def test_a_cluster_is_started_found_and_stopped(folder: Path, capfd: pytest.CaptureFixture[str]):
    full = _fill(folder / "log")
    start = ["cluster", "start", "--local", "--detach", "--port", "0", "--workers", "1"]
    code, out, err = shown(capfd, *start, "--folder", str(folder), "-o", "json")
    cluster = json.loads(out)
    assert code == 0
    assert f"iris cluster stop --folder {folder}" in err
    handle = os.pidfd_open(cluster["pid"])
    # Set aside by the cluster itself, which goes on in another.
    assert (folder / "log.old").stat().st_size >= full
    assert "worker joined" in (folder / "log").read_text()

    status = json.loads(
        shown(capfd, "cluster", "status", "--controller", cluster["address"], "-o", "json")[1]
    )
    assert status["workers"] == {"ready": 1}
    assert json.loads(shown(capfd, *start, "--folder", str(folder), "-o", "json")[1]) == cluster
    with IrisClient.remote(cluster["address"]) as client:
        gang = client.gang(_meeting_place, "meet", replicas=2, resources={"cpu": 0.5})
        assert client.wait(gang, timeout=60) == ["127.0.0.1", "127.0.0.1"]

    code, out, err = shown(capfd, "cluster", "stop", "--folder", str(folder), "-o", "json")
    assert (code, json.loads(out)) == (0, [cluster])
    assert "has ended" in err
    assert select.select([handle], [], [], 0)[0]
    os.close(handle)
    assert not list((folder / "slices").glob("slice-*"))
    assert shown(capfd, "cluster", "stop", "--folder", str(folder), "-o", "json")[:2] == (0, "[]\n")


def test_clusters_of_ones_own_start_with_the_token_of_another_in_the_environment(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("IRIS_TOKEN", "of-the-lab")
    start = ["cluster", "start", "--local", "--detach", "--port", "0", "--workers", "1"]
    code, _, err = shown(capfd, *start, "--folder", str(folder))
    assert code == 0, err
    with IrisClient.local(workers=1) as client:
        assert client.jobs() == []
    # What the one left for clients went with it; the other still runs.
    (left,) = Path(os.environ["XDG_STATE_HOME"]).glob("neorion/iris/*.token")
    assert shown(capfd, "cluster", "stop", "--folder", str(folder))[0] == 0
    assert not left.exists()


def _with_a_child() -> str:
    with IrisClient.remote() as client:
        child = client.submit(lambda: "well", "child")
        return f"{child.name} {client.wait(child, timeout=60)}"


def test_without_tokens_everybody_on_this_machine_is_let_in(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    start = ["cluster", "start", "--local", "--detach", "--port", "0", "--workers", "2", "--no-auth"]
    code, out, err = shown(capfd, *start, "--folder", str(folder), "-o", "json")
    assert code == 0, err
    assert "warning: All users of this machine have full access to this cluster." in err
    # As another user, for whom the controller left no token. The pin of its key is no secret.
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "nobody"))
    pin = re.search(r"Other users of this machine set: export IRIS_TOKEN=(sha256:\w+:)", err)
    assert pin is not None
    monkeypatch.setenv("IRIS_TOKEN", pin[1])
    monkeypatch.setenv("IRIS_CONTROLLER", json.loads(out)["address"])
    monkeypatch.setenv("IRIS_USER", "ada")
    with IrisClient.remote() as client:
        assert client.wait(client.submit(_with_a_child, "parent"), timeout=60) == "/ada/parent/child well"
    entries = json.loads(shown(capfd, "audit", "-o", "json")[1])
    assert {(one["who"], one["target"]) for one in entries if one["what"] == "Submit"} == {
        ("guest", "/ada/parent"),
        ("ada", "/ada/parent/child"),
    }


def test_a_process_that_only_has_the_number_of_a_cluster_is_left_alone(
    folder: Path, capfd: pytest.CaptureFixture[str]
):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        record = {"address": NOWHERE, "pid": stranger.pid, "began": 1, "folder": str(folder), "log": ""}
        (folder / "cluster.json").write_text(json.dumps(record))
        assert shown(capfd, "cluster", "stop", "--folder", str(folder), "-o", "json")[:2] == (0, "[]\n")
        assert stranger.poll() is None
        stranger.communicate(b"\n")


def test_a_cluster_in_the_foreground_ends_with_its_command(folder: Path):
    command = ["cluster", "start", "--local", "--port", "0", "--folder", str(folder), "-o", "json"]
    with subprocess.Popen([*PROGRAM, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(7)]
        handle = os.pidfd_open(json.loads(b"".join(lines))["pid"])
        process.send_signal(signal.SIGINT)
        assert process.wait() == Exit.INTERRUPTED
    assert select.select([handle], [], [], 10)[0]
    os.close(handle)


def test_ctrl_c_while_a_cluster_starts_leaves_none(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    handles: list[int] = []
    said = local_cluster._read_address

    async def interrupted(pid: int, *args: Any) -> NoReturn:
        handles.append(os.pidfd_open(pid))
        await said(pid, *args)
        raise KeyboardInterrupt

    monkeypatch.setattr(local_cluster, "_read_address", interrupted)
    start = ("cluster", "start", "--local", "--detach", "--port", "0", "--folder", str(folder))
    assert shown(capfd, *start)[:2] == (Exit.INTERRUPTED, "")
    assert select.select(handles, [], [], 0)[0] == handles
    os.close(handles[0])
    assert not list((folder / "slices").glob("slice-*"))


def test_ctrl_c_while_a_cluster_waits_for_its_first_worker_leaves_none(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    handles: list[int] = []

    async def interrupted(*args: object) -> NoReturn:
        del args
        handles.append(os.pidfd_open(json.loads((folder / "cluster.json").read_text())["pid"]))
        raise KeyboardInterrupt

    monkeypatch.setattr(local_cluster_impl, "first_worker", interrupted)
    start = ("cluster", "start", "--local", "--detach", "--port", "0", "--folder", str(folder))
    assert shown(capfd, *start)[:2] == (Exit.INTERRUPTED, "")
    assert select.select(handles, [], [], 0)[0] == handles
    os.close(handles[0])
    assert not list((folder / "slices").glob("slice-*"))
    assert not (folder / "cluster.json").exists()


def test_a_cluster_that_cannot_start_says_why(folder: Path, capfd: pytest.CaptureFixture[str]):
    (folder / "iris.db").write_text("no database, by far no database, and long enough to be none" * 40)
    code, out, err = shown(capfd, "cluster", "start", "--local", "--detach", "--folder", str(folder))
    assert (code, out) == (Exit.FAILED, "")
    assert "The cluster ended while it started: " in err
    assert shown(capfd, "cluster", "start")[0] == Exit.USAGE


def test_a_port_that_is_taken_is_told_in_one_sentence(folder: Path, capfd: pytest.CaptureFixture[str]):
    # What an earlier start died of is not what this one dies of.
    _fill(folder / "log")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        start = ("cluster", "start", "--local", "--detach", "--folder", str(folder), "--port", port)
        code, out, err = shown(capfd, *start)
    assert (code, out) == (Exit.FAILED, "")
    assert err.splitlines() == [
        f"error: The cluster ended while it started: Port {port} of 127.0.0.1 is in use.",
        "hint: Stop what uses it, or choose another; 0 takes a free one.",
        "code: iris.cluster_start",
    ]


@pytest.mark.parametrize("wrong", [("--workers", "257"), ("--workers", "0"), ("--port", "65536")])
def test_a_cluster_that_no_machine_holds_is_not_tried(
    folder: Path, capfd: pytest.CaptureFixture[str], wrong: tuple[str, str]
):
    code, out, err = shown(capfd, "cluster", "start", "--local", "--folder", str(folder), *wrong)
    assert (code, out) == (Exit.USAGE, "")
    assert f"Invalid value for '{wrong[0]}'" in err
    assert not list(folder.iterdir())


FILES = Path(__file__).parent.parent / "cluster_files"


def test_cluster_files_are_checked(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    good = sorted(FILES.glob("*.yaml"))
    assert good
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("platfrom: { local: {} }\n")
    code, out, _ = shown(capfd, "config", "validate", str(wrong), "-o", "json")
    assert code == Exit.FAILED
    assert any("platform" in one["sentence"] + one["hint"] for one in json.loads(out))
    assert shown(capfd, "config", "validate", str(tmp_path / "none.yaml"))[0] != 0


def test_the_schema_of_cluster_files_is_json(capfd: pytest.CaptureFixture[str]):
    code, out, _ = shown(capfd, "config", "schema")
    assert code == 0
    assert "scale_groups" in json.loads(out)["properties"]
