"""A worker that was shut out stays out, and its work goes on elsewhere."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.iris.cli.calling import PROGRAM
from tests.iris.processes import cluster

pytestmark = pytest.mark.timeout(240)


def _where() -> str:
    """Where its second attempt runs: the first one does not end by itself."""
    if os.environ["IRIS_ATTEMPT_NUMBER"] == "1":
        time.sleep(600)
    return os.environ["IRIS_WORKER_ID"]


def test_a_machine_started_by_hand_is_shut_out_for_good(tmp_path: Path):
    with cluster(tmp_path) as (there, client):
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
