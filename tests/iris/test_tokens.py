"""Tokens of real processes: a worker that was shut out stays out, and what a role may not do is on record."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from neorion.iris.client import IrisClient
from neorion.keel.base import Denied
from tests.iris.cli.calling import PROGRAM
from tests.iris.processes import cluster

pytestmark = pytest.mark.timeout(240)


def _where() -> str:
    """Where its second attempt runs: the first one does not end by itself."""
    if os.environ["IRIS_ATTEMPT_NUMBER"] == "1":
        signal.pause()
    return os.environ["IRIS_WORKER_ID"]


def test_a_machine_started_by_hand_is_shut_out_for_good(tmp_path: Path):
    # Its task is given up when it has been silent for so long.
    with cluster(tmp_path, worker_timeout="10s") as (there, client):
        old = (there.controller.folder / "worker.token").read_text()
        job = client.submit(_where, "moves")
        bad = next(
            task.worker for change in client.watch(job) for task in change.tasks if task.state == "running"
        )
        command = [*PROGRAM, "worker", "revoke", bad, "--controller", there.url]
        unasked = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert unasked.returncode != 0
        subprocess.run([*command, "--yes"], check=True, capture_output=True)
        good = client.wait(job, timeout=60)
        assert good != bad
        # By now the other one has tried to join again, with its own token and with the one it was started with.
        assert [worker.id for worker in client.workers()] == [good]
        assert (there.controller.folder / "worker.token").read_text() != old


def test_a_role_that_may_not_submit_is_on_record(tmp_path: Path):
    with cluster(tmp_path, workers=0) as (there, _):
        token = (there.controller.folder / "worker.token").read_text()
        with IrisClient.remote(there.url, token=token) as machine, pytest.raises(Denied):
            machine.submit("true", "sly")
        shown = subprocess.run(
            [*PROGRAM, "audit", "--controller", there.url, "-o", "json"], check=True, capture_output=True
        )
        (entry,) = json.loads(shown.stdout)
        assert (entry["who"], entry["what"], entry["outcome"]) == ("by-hand", "Submit", "rpc.role")
