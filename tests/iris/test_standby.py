"""Two controllers on one PostgreSQL: one leads, the other stands by and takes over."""

import json
import os
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from neorion.iris.client import IrisClient
from neorion.keel.clock import SystemClock
from tests.iris.processes import CLUSTER, Program, free_port, kill, processes_in
from tests.keel.store.postgres_server import PostgresServer, postgres_server

pytestmark = [pytest.mark.needs("postgres"), pytest.mark.timeout(300)]

CLOCK = SystemClock()
JOBS = 104
TAKE_OVER_S = 10.0
# After an orderly end the lease is free at once.
HAND_OVER_S = 2.0


class Pair:
    """Two controllers with one state folder, and workers that know both addresses."""

    def __init__(self, folder: Path, database: str) -> None:
        self.home = folder / "state"
        file = folder / "cluster.yaml"
        file.write_text(
            CLUSTER.format(worker_timeout="180s")
            + f"storage: {{ database: '{database}', state_dir: '{self.home}' }}\n"
        )
        self.urls = [f"https://127.0.0.1:{free_port()}" for _ in range(2)]
        self.controllers = [
            Program(folder / f"controller-{port}", *_serve(file, port))
            for port in (url.rpartition(":")[2] for url in self.urls)
        ]
        self.address = ",".join(self.urls)

    def start_both(self) -> None:
        """The first leads, the second waits."""
        first, second = self.controllers
        first.start()
        assert first.first_line() == self.urls[0], (first.folder / "stderr").read_text()
        second.start()
        until(lambda: self.ask(1, "/ready")[0] == 503)

    def ask(self, number: int, path: str) -> tuple[int, str]:
        context = ssl.create_default_context(cafile=self.home / "tls" / "server.crt")
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        try:
            url = self.urls[number] + path
            with urllib.request.urlopen(url, context=context, timeout=10) as answer:  # noqa: S310 -- https, on loopback
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except (urllib.error.URLError, OSError):
            return 0, ""

    def token(self, name: str) -> str:
        return (self.home / name).read_text()


def _serve(file: Path, port: str) -> list[str]:
    return ["controller", "serve", "--standby", "--config", str(file), "--host", "127.0.0.1", "--port", port]


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    end = CLOCK.monotonic() + seconds
    while not holds():
        assert CLOCK.monotonic() < end, "it did not happen in time"
        threading.Event().wait(0.02)


@pytest.fixture(scope="module")
def server() -> Generator[PostgresServer]:
    with postgres_server() as running:
        yield running


@contextmanager
def running(folder: Path, server: PostgresServer, workers: int, cpu: int = 4) -> Generator[Pair]:
    with ExitStack() as stack:
        found = Pair(folder, server.new_schema())
        for controller in found.controllers:
            stack.callback(controller.kill)
        found.start_both()
        for number in range(workers):
            stack.enter_context(_worker(folder / f"worker-{number}", found, cpu))
        yield found


@contextmanager
def _worker(folder: Path, pair: Pair, cpu: int) -> Generator[None]:
    arguments = ["--controller", pair.address, "--folder", str(folder), "--token-stdin", "--cpu", str(cpu)]
    program = Program(folder, "worker", "serve", *arguments, "--memory", "400Gi", "--disk", "400Gi")
    program.start(pair.token("worker.token"))
    try:
        yield
    finally:
        program.kill()
        for pid in processes_in(folder):
            kill(pid)


def waiting(folder: str, name: str) -> Callable[[], str]:
    """A task that marks its begin, which fails where the same attempt has begun before, and ends when it may."""

    def task() -> str:
        attempt = os.environ["IRIS_ATTEMPT_UID"]
        os.close(os.open(f"{folder}/{name}.{attempt}.begin", os.O_CREAT | os.O_EXCL))
        while not os.path.exists(f"{folder}/go"):  # noqa: PTH110 -- pickled into a bare interpreter
            threading.Event().wait(0.2)
        return f"{name} {attempt}"

    return task


def test_a_killed_leader_is_succeeded_while_a_hundred_jobs_run(server: PostgresServer, tmp_path: Path):
    marks = tmp_path / "marks"
    marks.mkdir()
    with (
        running(tmp_path, server, workers=2, cpu=JOBS) as pair,
        IrisClient.remote(pair.address, token=pair.token("admin.token")) as client,
    ):
        jobs = [
            client.submit(waiting(str(marks), f"job-{n}"), f"job-{n}", key=f"key-{n}") for n in range(JOBS)
        ]
        until(lambda: len(list(marks.glob("*.begin"))) >= JOBS, seconds=180)
        killed_at = CLOCK.monotonic()
        pair.controllers[0].kill()
        until(lambda: pair.ask(1, "/ready")[0] == 200)
        took = CLOCK.monotonic() - killed_at
        # Acknowledged by the leader that is dead; it is the same job.
        assert client.submit(waiting(str(marks), "job-0"), "job-0", key="key-0").id == jobs[0].id
        assert took <= TAKE_OVER_S, f"the take-over took {took:.1f} s"
        (marks / "go").touch()
        values = [client.wait(job, timeout=120) for job in jobs]
        attempts = [value.partition(" ") for value in values]
        assert [name for name, _, _ in attempts] == [f"job-{n}" for n in range(JOBS)]
        assert values == [client.wait(job, timeout=60) for job in jobs], "a value has changed"
        # One attempt of each has begun, and it is the one whose value was returned.
        assert {path.name for path in marks.glob("*.begin")} == {
            f"{name}.{attempt}.begin" for name, _, attempt in attempts
        }
        assert [task.tries for job in jobs for task in job.tasks()] == [1] * JOBS


def test_a_standby_says_so_and_follows_an_orderly_end_at_once(server: PostgresServer, tmp_path: Path):
    with running(tmp_path, server, workers=1) as pair:
        assert pair.ask(0, "/ready") == (200, "ok\n")
        status, alive = pair.ask(1, "/health")
        assert (status, alive.startswith("stands by: ")) == (200, True)
        until(lambda: str(pair.controllers[0].pid) in pair.ask(1, "/ready")[1])
        refusal = json.loads(pair.ask(1, "/ready")[1])
        assert (refusal["code"], refusal["family"]) == ("iris.standby", "retry")
        assert "neorion_iris_leader 0.0" in pair.ask(1, "/metrics")[1]
        with IrisClient.remote(pair.address, token=pair.token("admin.token")) as client:
            job = client.submit("echo up; sleep 3; echo down", "survivor")
            assert next(job.follow()) == "up\n"
            pair.controllers[0].stop()
            stopped_at = CLOCK.monotonic()
            until(lambda: pair.ask(1, "/ready")[0] == 200)
            took = CLOCK.monotonic() - stopped_at
            assert took <= HAND_OVER_S, f"the hand-over took {took:.1f} s"
            assert client.wait(job, timeout=60) is None
            assert job.logs() == "up\ndown\n"
            assert [task.tries for task in job.tasks()] == [1]
        assert "neorion_iris_leader 1.0" in pair.ask(1, "/metrics")[1]
        # The one that ended comes back as the standby of the other, and ends as one at once.
        pair.controllers[0].start()
        until(lambda: pair.ask(0, "/ready")[0] == 503)
        assert pair.controllers[0].stop() == 0


@pytest.mark.fault(9)
def test_a_leader_that_is_cut_off_from_the_store_orders_nothing(server: PostgresServer, tmp_path: Path):
    with running(tmp_path, server, workers=0) as pair:
        database = pair.home.parent / "cluster.yaml"
        url = database.read_text().partition("database: '")[2].partition("'")[0]
        with psycopg.connect(url) as other:
            # Each renewal waits for this lock, as for a server that does not answer.
            other.execute("SELECT * FROM store_owner FOR UPDATE")
            until(lambda: pair.ask(0, "/ready")[0] == 503)
            assert json.loads(pair.ask(0, "/ready")[1])["code"] == "store.standby"
            assert pair.ask(0, "/health")[0] == 200
            other.rollback()
        # One of the two leads again.
        until(lambda: 200 in (pair.ask(0, "/ready")[0], pair.ask(1, "/ready")[0]))


def test_without_a_database_server_there_is_no_standby(tmp_path: Path):
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER.format(worker_timeout="5s") + f"storage: {{ state_dir: '{tmp_path}' }}\n")
    controller = Program(tmp_path / "controller", *_serve(file, "0"))
    controller.start()
    assert controller.wait() == 2
    said = (controller.folder / "stderr").read_text()
    assert "iris.standby_store" in said
    assert "storage.database" in said
    assert not (tmp_path / "iris.db").exists()
