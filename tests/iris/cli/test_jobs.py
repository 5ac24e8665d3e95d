"""The commands that look at jobs and change them, against a real controller and a real worker."""

import json
import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from neorion.iris.cli.exit_status import exit_code
from neorion.iris.cli.options import BANDS, STATES
from neorion.iris.client import IrisClient
from neorion.iris.model import JobState, PriorityBand, TaskState
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Duration, Quantity
from neorion.keel.cli import Exit
from tests.iris.cli.calling import Iris, Start

CORES = str(os.cpu_count())


@pytest.fixture
def ended(iris: Iris) -> str:
    """The name of a job that wrote two lines and failed."""
    script = "echo one; echo two; exit 3"
    name = f"ended-{os.urandom(4).hex()}"
    assert iris("run", "--no-bundle", "--name", name, "--", "sh", "-c", script).code == 3
    return name


@pytest.fixture
def sleeper(iris: Iris, ended: str) -> Iterator[str]:
    """A job that has every core for as long as the test lasts; what has to end before does so."""
    del ended
    shown = iris("run", "--no-bundle", "--cpu", CORES, "--detach", "-o", "json", "--", "sleep", "100")
    job = json.loads(shown.out)["id"]
    yield job
    iris("job", "cancel", job, "--yes")


def test_the_words_of_the_options_are_those_of_the_model():
    assert [state.value for state in JobState] == [state.value for state in TaskState] == list(STATES)
    assert [band.name.lower() for band in PriorityBand] == list(BANDS)


@pytest.mark.parametrize(
    ("state", "ending", "code"),
    [
        ("succeeded", pb.Ending(), 0),
        ("cancelled", pb.Ending(cause="cancelled"), 128 + 15),
        ("failed", pb.Ending(cause="exit_code", code=7), 7),
        ("failed", pb.Ending(cause="signal", code=11), 128 + 11),
        ("failed", pb.Ending(cause="out_of_memory"), 128 + 9),
        ("failed", pb.Ending(cause="ran_too_long"), Exit.TIMEOUT),
        ("failed", pb.Ending(cause="waited_too_long"), Exit.TIMEOUT),
        ("failed", pb.Ending(cause="not_built", message="no such program"), Exit.NOT_STARTED),
        ("failed", pb.Ending(cause="worker_lost"), Exit.NOT_STARTED),
    ],
)
def test_every_end_has_an_exit_code(state: str, ending: pb.Ending, code: int):
    assert exit_code(pb.Job(state=state, ending=ending)) == code


def test_the_list_shows_live_jobs_and_all_when_asked(iris: Iris, sleeper: str, ended: str):
    def ids(*options: str) -> list[str]:
        return [one["id"] for one in json.loads(iris("job", "list", *options, "-o", "json").out)]

    failed = json.loads(iris("job", "describe", ended, "-o", "json").out)
    assert ids() == [sleeper]
    assert ids("--all")[:2] == [sleeper, failed["id"]]
    assert failed["id"] in ids("--state", "failed")
    assert sleeper not in ids("--state", "failed")
    assert ids("--all", failed["name"]) == [failed["id"]]
    assert iris("job", "list", "/nobody/", "-o", "json").out == "[]\n"


def test_a_watcher_sees_a_job_come_and_go(iris: Iris, start: Start):
    watcher = start("job", "list", "-w", "-o", "json")
    assert watcher.stdout is not None
    shown = iris("run", "--no-bundle", "--detach", "-o", "json", "--", "sleep", "100")
    job = json.loads(shown.out)["id"]
    first = json.loads(watcher.stdout.readline())
    assert first["id"] == job
    assert first["state"] in {"pending", "running"}
    iris("job", "cancel", job, "--yes")
    assert any(json.loads(line)["state"] == "cancelled" for line in watcher.stdout)


def test_a_description_says_how_the_job_ended(iris: Iris, ended: str):
    shown = json.loads(iris("job", "describe", ended, "-o", "json").out)
    assert (shown["state"], shown["cause"], shown["exit_code"]) == ("failed", "exit_code", 3)
    assert shown["reason"] == f"{shown['name']} ended with exit code 3."
    assert shown["resources"] == {"cpu": "1", "memory": "1Gi"}
    assert shown["submitted"] < shown["ended"]
    block = iris("job", "describe", ended).out
    assert "s ago\n" in block
    assert shown["submitted"] in block


def test_logs_are_there_after_the_end(iris: Iris, ended: str):
    assert iris("job", "logs", ended).out == "one\ntwo\n"
    assert iris("job", "logs", ended, "--task", "0", "--attempt", "1").out == "one\ntwo\n"
    assert iris("job", "logs", ended, "--tail", "1").out == "two\n"
    assert iris("job", "logs", ended, "-f").out == "one\ntwo\n"
    assert json.loads(iris("job", "logs", ended, "-o", "json").out) == {"task": 0, "text": "one\ntwo\n"}
    assert iris("job", "logs", ended, "--task", "7").code == Exit.NOT_FOUND


def test_following_goes_on_where_the_tail_ended(iris: Iris, start: Start, tmp_path: Path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = f"echo one; echo two; read word < {gate}; echo $word"
    shown = iris("run", "--no-bundle", "--detach", "-o", "json", "--", "sh", "-c", script)
    job = json.loads(shown.out)["id"]
    with gate.open("w") as end:  # opens when the task reads, and then it has written
        before = start("job", "logs", job, "-f")
        assert before.stdout is not None
        assert [before.stdout.readline(), before.stdout.readline()] == ["one\n", "two\n"]
        after = start("job", "logs", job, "-f", "--tail", "1")
        assert after.stdout is not None
        assert after.stdout.readline() == "two\n"
        end.write("three\n")
    assert before.stdout.read() == after.stdout.read() == "three\n"
    assert before.wait() == after.wait() == 0


def test_waiting_ends_as_the_job_did(iris: Iris, sleeper: str, ended: str):
    assert iris("job", "wait", ended).code == 3
    assert json.loads(iris("job", "wait", ended, "-o", "json").out)["exit_code"] == 3
    assert iris("job", "wait", sleeper, "--timeout", "50ms").code == Exit.TIMEOUT
    assert iris("job", "wait", "nobody").code == Exit.NOT_STARTED


def test_why_gives_one_sentence_and_a_hint(iris: Iris, sleeper: str, ended: str):
    shown = iris("run", "--no-bundle", "--cpu", CORES, "--detach", "-o", "json", "--", "true")
    waiting = json.loads(shown.out)["id"]
    try:
        why = json.loads(iris("why", waiting, "-o", "json").out)
        assert why["state"] == "pending"
        assert why["sentence"].endswith(".")
        assert why["code"] not in {"", "new"}
    finally:
        iris("job", "cancel", waiting, "--yes")
    assert json.loads(iris("why", sleeper, "-o", "json").out)["code"] == "running"
    over = json.loads(iris("why", ended, "-o", "json").out)
    assert (over["code"], over["sentence"]) == ("exit_code", f"{over['name']} ended with exit code 3.")
    assert over["hint"] == f"See its output with: iris job logs {over['name']}."


def test_cancelling_ends_the_process(iris: Iris, start: Start):
    process = start("run", "--no-bundle", "--name", "doomed", "--", "sh", "-c", "echo $$; exec sleep 100")
    assert process.stdout is not None
    handle = os.pidfd_open(int(process.stdout.readline()))
    would = iris("job", "cancel", "doomed", "--dry-run", "-o", "name").out
    assert would.endswith("/doomed\n")
    assert iris("job", "cancel", "doomed").code == Exit.USAGE
    assert iris("job", "cancel", "doomed", "nobody", "--yes").code == Exit.NOT_FOUND
    assert json.loads(iris("job", "describe", "doomed", "-o", "json").out)["state"] == "running"
    assert iris("job", "cancel", "doomed", "--yes", "-o", "name").out == would
    assert select.select([handle], [], [], 10)[0]
    os.close(handle)
    assert process.wait() == 128 + 15
    again = iris("job", "cancel", "doomed", "--yes", "-o", "json")
    assert (again.code, again.out) == (0, "[]\n")


def test_tasks_are_listed_by_state(iris: Iris, ended: str):
    (shown,) = json.loads(iris("task", "list", ended, "-o", "json").out)
    assert (shown["index"], shown["state"], shown["tries"], shown["exit_code"]) == (0, "failed", 1, 3)
    assert iris("task", "list", ended, "--state", "running", "-o", "json").out == "[]\n"


def test_a_drained_worker_is_given_nothing_until_it_is_undrained(iris: Iris):
    assert iris("run", "--no-bundle", "--", "true").code == 0
    (worker,) = json.loads(iris("worker", "list", "-o", "json").out)
    assert iris("worker", "drain", worker["id"], "-o", "name").out == f"{worker['id']}\n"
    try:
        (drained,) = json.loads(iris("worker", "list", "-o", "json").out)
        assert drained["draining"]
        shown = iris("run", "--no-bundle", "--name", "held", "--detach", "--", "true")
        assert shown.code == 0
        assert iris("job", "wait", "held", "--timeout", "300ms").code == Exit.TIMEOUT
    finally:
        iris("worker", "undrain", worker["id"])
    assert iris("job", "wait", "held").code == 0
    assert iris("worker", "drain", worker["id"] + "x").code == Exit.NOT_FOUND


def test_an_unknown_job_is_answered_with_the_nearest(iris: Iris, ended: str):
    wrong = ended[:-1] + ("0" if ended[-1] != "0" else "1")
    for command in (("job", "describe"), ("job", "logs"), ("task", "list"), ("why",)):
        done = iris(*command, wrong)
        assert done.code == Exit.NOT_FOUND
        assert f'did you mean "{ended}"?' in done.err
        assert done.out == ""


def test_a_job_that_stands_elsewhere_is_named_as_it_is_found(iris: Iris):
    assert iris("run", "--no-bundle", "--name", "sweep/first/warmup", "--", "true").code == 0
    hint = iris("job", "describe", "warmup").err.splitlines()[1]
    whole = hint.split('"')[1]
    assert whole.endswith("/sweep/first/warmup")
    assert iris("job", "describe", whole).code == 0


@pytest.mark.parametrize(
    "command",
    [
        "job list --all",
        "job describe JOB",
        "task list JOB",
        "why JOB",
        "worker list",
        "slice list",
        "cluster status",
    ],
)
def test_machines_get_pure_data(iris: Iris, ended: str, command: str):
    args = [ended if word == "JOB" else word for word in command.split()]
    as_json, as_yaml = iris(*args, "-o", "json"), iris(*args, "-o", "yaml")
    assert as_json.code == as_yaml.code == 0
    assert json.loads(as_json.out) == yaml.safe_load(as_yaml.out)
    assert as_json.err == ""
    assert iris(*args, "-o", "name").out.strip()
    assert iris(*args, "-o", "wide").out.strip()


def test_the_controller_itself_sends_no_more_than_the_tail(iris: Iris, cluster: dict[str, str]):
    assert iris("run", "--no-bundle", "--name", "tail", "--", "seq", "1", "1000").code == 0
    with IrisClient.remote(cluster["IRIS_CONTROLLER"]) as client:
        assert client.logs(client.path("tail"), tail_lines=2) == "999\n1000\n"
        assert client.logs(client.path("tail"), tail_lines=10**9) == client.logs(client.path("tail"))


def test_one_task_is_shown_and_read_by_its_number(iris: Iris, ended: str):
    shown = json.loads(iris("task", "describe", ended, "0", "-o", "json").out)
    assert (shown["index"], shown["state"], shown["exit_code"], shown["cause"]) == (
        0,
        "failed",
        3,
        "exit_code",
    )
    assert iris("task", "logs", ended, "0").out == "one\ntwo\n"
    assert iris("task", "logs", ended, "0", "--tail", "1").out == "two\n"
    missing = iris("task", "describe", ended, "7", "-o", "json")
    assert missing.code == Exit.NOT_FOUND
    assert json.loads(missing.err)["error"]["code"] == "iris.no_task"


def test_every_try_of_a_task_tells_how_it_ended(iris: Iris, tmp_path: Path):
    mark = tmp_path / "tried"
    script = f"test -e {mark} && exit 0; touch {mark}; exit 3"
    name = f"again-{os.urandom(4).hex()}"
    done = iris("run", "--no-bundle", "--retries", "1", "--name", name, "--", "sh", "-c", script)
    assert done.code == 0
    first, second = json.loads(iris("task", "attempts", name, "0", "-o", "json").out)
    assert (first["number"], first["state"], first["exit_code"]) == (1, "failed", 3)
    assert (second["number"], second["state"], second["exit_code"]) == (2, "succeeded", 0)
    assert first["started"] <= first["ended"] <= second["started"]
    assert iris("task", "attempts", name, "0", "-o", "name").out.split() == [first["id"], second["id"]]
    head, *rows = iris("task", "attempts", name, "0").out.splitlines()
    assert head.split()[:2] == ["ATTEMPT", "STATE"]
    assert [row.split()[:2] for row in rows] == [["1", "failed"], ["2", "succeeded"]]
    assert [row.endswith(why) for row, why in zip(rows, ("exit code", "done"), strict=True)] == [True, True]
    missing = iris("task", "attempts", name, "7", "-o", "json")
    assert missing.code == Exit.NOT_FOUND
    assert json.loads(missing.err)["error"]["code"] == "iris.no_task"


def test_a_task_that_has_ended_tells_what_it_took(iris: Iris):
    name = f"hungry-{os.urandom(4).hex()}"
    script = "import time; held = bytes(range(256)) * (300 << 12); began = time.process_time()\nwhile time.process_time() - began < 0.2: pass"
    assert iris("run", "--no-bundle", "--name", name, "--", "python3", "-c", script).code == 0
    (attempt,) = json.loads(iris("task", "attempts", name, "0", "-o", "json").out)
    usage = attempt["usage"]
    assert Quantity.parse(usage["memory_peak"]) > Quantity.parse("300Mi")
    assert Duration.parse(usage["cpu_time"]) > Duration.of(ms=200)
    assert (usage["cpu"], usage["memory"], usage["processes"]) == (None, None, None)
    assert json.loads(iris("task", "describe", name, "0", "-o", "json").out)["usage"] == usage
    head, row = iris("task", "attempts", name, "0").out.splitlines()
    assert head.split()[5:9] == ["CPU", "TIME", "MOST", "MEMORY"]
    assert "Mi  " in row


def test_a_task_that_waits_has_not_been_tried(iris: Iris, sleeper: str):
    del sleeper
    shown = iris("run", "--no-bundle", "--cpu", CORES, "--detach", "-o", "json", "--", "true")
    job = json.loads(shown.out)["id"]
    assert json.loads(iris("task", "attempts", job, "0", "-o", "json").out) == []
    assert "has no attempt yet" in iris("task", "attempts", job, "0").err
    iris("job", "cancel", job, "--yes")


def test_who_has_no_token_is_told_where_it_goes(iris: Iris, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    # As somebody else on this machine, for whom the controller left none.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    done = iris("job", "list")
    assert (done.code, done.out) == (Exit.DENIED, "")
    assert "requires a token" in done.err
    assert "hint: Set IRIS_TOKEN to the token" in done.err
