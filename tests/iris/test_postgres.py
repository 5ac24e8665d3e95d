"""A controller whose state is in PostgreSQL: killed and started again, it has lost nothing."""

from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest

from neorion.iris.client import IrisClient
from tests.iris.processes import Cluster
from tests.keel.store.postgres_server import PostgresServer, postgres_server

pytestmark = [pytest.mark.needs("postgres"), pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def server() -> Generator[PostgresServer]:
    with postgres_server() as running:
        yield running


def test_jobs_and_running_tasks_outlive_a_killed_controller(server: PostgresServer, tmp_path: Path):
    # The next owner of a PostgreSQL waits until its predecessor's claim is over; workers must be as patient.
    more = f"storage: {{ database: '{server.new_schema()}' }}\n"
    with (
        Cluster(tmp_path, more=more) as cluster,
        IrisClient.remote(cluster.url) as client,
    ):
        assert client.wait(client.submit(lambda: 42, "before"), timeout=60) == 42
        job = client.submit("echo up; sleep 4; echo down", "survivor")
        assert next(job.follow()) == "up\n"
        cluster.controller.kill()
        cluster.start_controller()
        assert client.wait(job, timeout=60) is None
        assert [task.tries for task in job.tasks()] == [1]
        assert client.wait(client.submit("true", "after"), timeout=60) is None
        assert [one.state for one in client.jobs()] == ["succeeded"] * 3
    assert not (tmp_path / "controller" / "iris.db").exists()
    home = tmp_path / "controller"
    said = "".join(path.read_text() for path in tmp_path.rglob("stderr"))
    badges = [path.read_text() for path in tmp_path.rglob("worker.badge")]
    # The second worker may still be on its way in.
    assert badges
    for secret in ((home / "admin.token").read_text(), (home / "worker.token").read_text(), *badges):
        assert secret.rpartition(".")[2] not in said


def test_a_controller_that_was_succeeded_ends_though_nobody_asks_it_anything(
    server: PostgresServer, tmp_path: Path
):
    schema = server.new_schema()
    with Cluster(tmp_path, workers=0, more=f"storage: {{ database: '{schema}' }}\n") as cluster:
        with psycopg.connect(schema) as successor:
            successor.execute("UPDATE store_owner SET epoch = epoch + 1")
        assert cluster.controller.wait() != 0
    assert "store.fenced" in (tmp_path / "controller" / "stderr").read_text()
