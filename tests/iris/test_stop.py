"""A controller that is told to stop lets go of whoever waits, and the next one goes on."""

import threading
from pathlib import Path

import pytest

from neorion.iris.client import IrisClient
from tests.iris.processes import Cluster


@pytest.mark.timeout(240)
def test_waits_and_streams_in_flight_outlive_an_orderly_restart(tmp_path: Path):
    with Cluster(tmp_path, worker_timeout="30s") as cluster, IrisClient.remote(cluster.url) as client:
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
