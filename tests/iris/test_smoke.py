"""What a user does first, with real processes."""

import importlib
import os
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from neorion.iris.client import IrisClient
from neorion.keel.base import Deadline, Invalid, NotFound
from tests.iris.processes import Cluster


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    # Nobody is lost here on purpose: a busy machine takes its time to start a controller again.
    with Cluster(tmp_path_factory.mktemp("iris"), worker_timeout="60s") as found:
        yield found


@pytest.fixture
def client(running: Cluster) -> Generator[IrisClient]:
    with IrisClient.remote(running.url) as found:
        yield found


def test_a_function_comes_back_with_its_value(running: Cluster):
    url = running.url
    # fmt: off
    client = IrisClient.remote(url)
    job = client.submit(lambda: 42, 'smoke-test')  # noqa: Q000 -- the document's own words
    assert client.wait(job, timeout=2400) == 42
    # fmt: on
    client.close()


def test_an_exception_is_raised_here_with_the_traceback_of_there(client: IrisClient):
    def divide() -> float:
        return 1 / 0

    job = client.submit(divide, "divide")
    with pytest.raises(ZeroDivisionError) as caught:
        client.wait(job, timeout=60)
    (note,) = caught.value.__notes__
    _, head, first, *_ = note.splitlines()
    assert head == "Traceback (most recent call last):"
    # It begins with what the user wrote, and not with what called it.
    assert first.endswith("in divide")
    assert first.strip() in job.logs()


def test_the_traceback_of_a_map_begins_with_the_function_too(client: IrisClient):
    def invert(number: int) -> float:
        return 1 / number

    with pytest.raises(ZeroDivisionError) as caught:
        client.map(invert, [0], "inverts")
    told = "".join(caught.value.__notes__)
    assert "in invert" in told
    assert "model/each.py" not in told


def test_a_function_of_the_users_own_files_travels_with_what_it_uses(
    client: IrisClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "my_numbers.py").write_text("FACTOR = 6\ndef scaled(n):\n    return n * FACTOR\n")
    (tmp_path / "my_work.py").write_text("import my_numbers\ndef work(n):\n    return my_numbers.scaled(n)\n")
    monkeypatch.syspath_prepend(tmp_path)
    work = importlib.import_module("my_work").work
    assert client.wait(client.submit(work, "own-files", args=(7,)), timeout=60) == 42


def test_map_gives_values_in_order(client: IrisClient):
    def square(number: int) -> int:
        return number * number

    assert client.map(square, range(100), "squares") == [n * n for n in range(100)]


def test_a_gang_knows_its_ranks_and_one_meeting_point(client: IrisClient):
    def surroundings() -> dict[str, str]:
        names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "IRIS_NUM_TASKS")
        return {name: os.environ[name] for name in names}

    found: list[dict[str, str]] = client.wait(client.gang(surroundings, "gang", replicas=3), timeout=60)
    assert [one["RANK"] for one in found] == ["0", "1", "2"]
    assert {one["WORLD_SIZE"] for one in found} == {"3"}
    assert len({(one["MASTER_ADDR"], one["MASTER_PORT"]) for one in found}) == 1
    assert found[0]["MASTER_PORT"].isdecimal()


def test_cancel_ends_the_whole_process_tree(client: IrisClient, tmp_path: Path):
    mark = tmp_path / "pids"
    job = client.submit(
        f"setsid sleep 987 & echo $! > {mark}.part; mv {mark}.part {mark}; echo up; sleep 987", "tree"
    )
    assert next(job.follow()).startswith("up")
    pid = int(mark.read_text())
    assert Path(f"/proc/{pid}").exists()
    assert client.cancel(job) == [job.name]
    with pytest.raises(Exception, match="was cancelled"):
        client.wait(job, timeout=60)
    # Its place is given back only when nothing is left of it: a job that needs every place of both workers runs after.
    client.wait(client.submit("true", "after", replicas=2, resources={"cpu": 4}), timeout=60)
    assert not Path(f"/proc/{pid}").exists()


def test_followed_logs_end_with_the_task(client: IrisClient):
    job = client.submit("echo one; echo two", "talker")
    assert "".join(job.follow()) == "one\ntwo\n"


def test_wrong_input_is_refused_with_a_reason(client: IrisClient):
    lock = threading.Lock()
    with pytest.raises(Invalid, match="cannot be pickled"):
        client.submit(lambda: lock, "unpicklable")
    with pytest.raises(Invalid, match="not a valid job name"):
        client.submit("true", "no/such//name")
    with pytest.raises(Invalid) as infeasible:
        client.submit("true", "huge", resources={"cpu": 4096})
    assert infeasible.value.code == "iris.infeasible"
    with pytest.raises(NotFound):
        client.wait("job-that-never-was")
    with pytest.raises(Invalid, match="not a valid resource"):
        client.submit("true", "odd", resources={"cpus": 1})


def test_large_values_and_arguments_go_both_ways(client: IrisClient):
    def exclaim(given: bytes) -> bytes:
        return given + b"!"

    body = b"x" * (9 * 1024 * 1024)
    job = client.submit(exclaim, "large", args=(body,))
    assert client.wait(job, timeout=120) == body + b"!"


def test_an_unpicklable_value_is_an_error_with_a_reason(client: IrisClient):
    def make() -> Any:
        return threading.Lock()

    with pytest.raises(Exception, match="pickle"):
        client.wait(client.submit(make, "lock"), timeout=60)


def test_waiting_too_long_for_a_place_fails_the_job(client: IrisClient):
    blocker = client.submit("sleep 600", "blocker", replicas=2, resources={"cpu": 4})
    patient = client.submit("true", "patient", resources={"cpu": 4})
    late = client.submit("true", "late", resources={"cpu": 4}, scheduling_timeout="1s")
    with pytest.raises(Exception, match="longer than its scheduling timeout"):
        client.wait(late, timeout=60)
    reason = patient.status().reason
    assert reason is not None
    assert reason.code in {"cpu_short", "group_delay", "group_quota"}
    client.cancel(blocker)
    assert client.wait(patient, timeout=60) is None


def test_a_wait_that_is_too_short_says_so_and_harms_nothing(client: IrisClient):
    job = client.submit("sleep 1", "slow")
    with pytest.raises(Deadline):
        client.wait(job, timeout=0.05)
    assert client.wait(job, timeout=60) is None


def test_a_restarted_controller_finds_its_running_tasks_again(running: Cluster, client: IrisClient):
    job = client.submit("echo up; sleep 3", "survivor")
    assert next(job.follow()) == "up\n"
    running.controller.kill()
    running.start_controller()
    assert client.wait(job, timeout=60) is None
    assert [task.tries for task in job.tasks()] == [1]
