"""What a worker leaves on its disk."""

from pathlib import Path

from tests.iris.processes import cluster


def test_a_worker_keeps_no_log_that_the_controller_has(tmp_path: Path):
    with cluster(tmp_path, workers=1) as (found, client):
        first = client.submit(["echo", "hello"], "first")
        client.wait(first, timeout=60)
        (task,) = first.tasks()
        # A worker reports an end only after it has cleared up behind those that it reported before.
        client.wait(client.submit(lambda: None, "second"), timeout=60)
        assert first.logs() == "hello\n"
        assert not (found.workers[0].folder / "runtime" / "attempts" / task.attempt).exists()
