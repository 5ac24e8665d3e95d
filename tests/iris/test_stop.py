"""A controller that is told to stop lets go of whoever waits, and the next one goes on."""

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from neorion.iris.client import IrisClient, connection
from neorion.keel.base import Deadline, Error, Retry, Terminal
from neorion.keel.run import Backoff
from tests.iris.processes import Cluster, Program, kill, processes_in
from tools.leftovers import temporary_folder_prefix


@pytest.mark.timeout(240)
def test_waits_and_streams_in_flight_outlive_an_orderly_restart(tmp_path: Path):
    with Cluster(tmp_path) as cluster, IrisClient.remote(cluster.url) as client:
        job = client.submit("echo up; sleep 4; echo down", "long")
        assert next(job.follow()) == "up\n"
        values: list[object] = []
        waiting = threading.Thread(target=lambda: values.append(client.wait(job, timeout=60)))
        waiting.start()
        assert cluster.controller.stop() == 0
        cluster.start_controller()
        waiting.join(60)
        assert values == [None]
        assert [task.tries for task in job.tasks()] == [1]
        assert job.logs() == "up\ndown\n"
        assert "Traceback" not in (cluster.controller.folder / "stderr").read_text()


@pytest.mark.timeout(240)
def test_who_waits_and_follows_does_so_until_the_controller_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(connection, "_RETRIES", Backoff(attempts=1))
    with Cluster(tmp_path) as cluster, IrisClient.remote(cluster.url) as client:
        job = client.submit(f"echo up; until test -e {tmp_path}/go; do sleep 0.1; done; echo down", "long")
        told, values = list[str](), list[object]()
        threads = [
            threading.Thread(target=lambda: told.extend(job.follow())),
            threading.Thread(target=lambda: values.append(client.wait(job, timeout=120))),
        ]
        assert next(job.follow()) == "up\n"
        for thread in threads:
            thread.start()
        cluster.controller.kill()
        with pytest.raises(Deadline, match="not ended"):
            client.wait(job, timeout=0.1)
        with pytest.raises(Retry), IrisClient.remote(cluster.url) as stranger:
            stranger.wait(job)
        assert "still waiting" in caplog.text
        cluster.start_controller()
        (tmp_path / "go").touch()
        for thread in threads:
            thread.join(120)
        assert ("".join(told), values) == ("up\ndown\n", [None])


_INTERRUPTED = """
import os, pathlib, signal, sys, time
from iris.client import IrisClient

go = pathlib.Path(sys.argv[1])

def until_told():
    while not go.exists():
        time.sleep(0.01)
    return "went on"

with IrisClient.local(workers=1) as client:
    goes_on = client.submit(until_told, "goes-on", resources={"cpu": 0.1})
    client.submit("true", "first", resources={"cpu": 0.1}).wait()
    try:
        os.killpg(0, signal.SIGINT)
        client.submit("sleep 1000", "waited-for").wait()
    except KeyboardInterrupt:
        go.touch()
        print(client.wait(goes_on, timeout=60))
"""


def test_ctrl_c_ends_the_waiting_and_not_the_cluster_of_ones_own(tmp_path: Path):
    # A terminal, and a notebook's interrupt button, signal the whole group of processes.
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, str(tmp_path / "go")],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "went on\n", "")


@pytest.mark.timeout(240)
def test_a_cluster_of_ones_own_that_is_killed_is_missed_at_once_and_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch,
):
    with tempfile.TemporaryDirectory(prefix=temporary_folder_prefix(), ignore_cleanup_errors=True) as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        with IrisClient.local(workers=1) as client:
            job = client.submit("echo up; sleep 1000", "long")
            assert next(job.follow()) == "up\n"
            (controller,) = (pid for pid in processes_in(Path(folder)) if _is_ours(pid))
            kill(controller)
            for ask in (lambda: client.wait(job), lambda: client.submit("true", "more")):
                with pytest.raises(Error) as missed:
                    ask()
                assert (type(missed.value), missed.value.code) == (Terminal, "iris.embedded_ended")
        # Its task ends with the lease, and what ran it a moment later.
        while processes_in(Path(folder)):
            pass


def _is_ours(pid: int) -> bool:
    return f"PPid:\t{os.getpid()}\n" in Path(f"/proc/{pid}/status").read_text()


@pytest.mark.timeout(240)
def test_a_worker_with_a_grace_ends_its_tasks_before_itself_and_they_count_as_lost(tmp_path: Path):
    """As in a Pod that is deleted: its tasks cannot outlive it."""
    script = "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    with Cluster(tmp_path, workers=1) as cluster, IrisClient.remote(cluster.url) as client:
        (worker,) = cluster.workers
        worker.kill()
        leaving = Program(tmp_path / "pod", *cluster.worker_args(tmp_path / "pod"), "--stop-grace=20")
        cluster.start_worker(leaving)
        job = client.submit(script, "long", preemption_retries=0)
        assert next(job.follow()) == "up\n"
        assert leaving.stop() == 0
        # It ended because its worker did, so it has not succeeded.
        with pytest.raises(Error):
            client.wait(job, timeout=60)
        (task,) = job.tasks()
        assert (task.failures, task.losses) == (0, 1)
        assert job.logs().endswith("saved\n")
