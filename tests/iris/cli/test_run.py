"""`iris run` against a real controller and a real worker."""

import json
import os
import select
import signal
import socket
from pathlib import Path

import pytest

from neorion.iris.model.tokens import token_file
from neorion.keel.cli import Exit
from tests.iris.cli.calling import Iris, Start
from tests.iris.cli.wire import Wire


def ends(handle: int) -> bool:
    """Whether the process behind the handle ends soon."""
    try:
        return bool(select.select([handle], [], [], 10)[0])
    finally:
        os.close(handle)


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 128 + signal.SIGTERM)]
)
def test_the_exit_code_is_the_commands_own(start: Start, script: str, code: int):
    process = start("run", "--", "sh", "-c", script)
    process.communicate()
    assert process.returncode == code


def test_stdout_is_what_the_command_writes_and_the_files_are_there(iris: Iris, environment: Path):
    (environment / "data.txt").write_text("content\n")
    (environment / "tool").write_text("#!/bin/sh\necho from the tool\n")
    (environment / "tool").chmod(0o755)
    done = iris("run", "--env", "WHO=me", "--", "sh", "-c", "cat data.txt; ./tool; echo $WHO")
    assert done.code == 0
    assert done.out == "content\nfrom the tool\nme\n"
    assert "submitted /" in done.err


def test_output_comes_while_the_command_still_runs(start: Start, tmp_path: Path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    process = start("run", "--", "sh", "-c", f"echo ready; read word < {gate}; echo got $word")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    gate.write_text("it\n")
    assert process.stdout.readline() == "got it\n"
    assert process.wait() == 0


def test_a_broken_connection_costs_nothing(
    cluster: dict[str, str], start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    port = int(cluster["IRIS_CONTROLLER"].rpartition(":")[2])
    token = Path(token_file(cluster, port)).read_text()
    monkeypatch.setenv("IRIS_TOKEN", token)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with Wire(port) as wire:
        address = f"http://127.0.0.1:{wire.port}"
        script = f"echo one; read word < {gate}; echo $word; exit 4"
        process = start("run", "--no-bundle", "--controller", address, "--", "sh", "-c", script)
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "one\n"
        wire.cut()
        assert any(line.startswith("lost the connection") for line in process.stderr)
        gate.write_text("two\n")
        assert process.stdout.read() == "two\n"
        assert process.wait() == 4


def test_lines_of_several_tasks_carry_their_number(iris: Iris):
    done = iris("run", "--replicas", "3", "--cpu", "0.1", "--", "sh", "-c", "echo I am $IRIS_TASK_INDEX")
    assert sorted(done.out.splitlines()) == ["[0] I am 0", "[1] I am 1", "[2] I am 2"]


def test_a_second_try_is_shown_after_the_first(iris: Iris, tmp_path: Path):
    mark = tmp_path / "mark"
    script = f"echo one; test -e {mark} || {{ touch {mark}; exit 1; }}; echo two"
    done = iris("run", "--retries", "1", "--", "sh", "-c", script)
    assert (done.code, done.out) == (0, "one\none\ntwo\n")


def test_with_json_each_line_is_one_object(iris: Iris):
    done = iris("run", "-o", "json", "--", "sh", "-c", "echo a; echo b")
    written = [json.loads(line) for line in done.out.splitlines()]
    assert (done.code, "".join(one["text"] for one in written)) == (0, "a\nb\n"), done.err
    assert {one["task"] for one in written} == {0}


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_a_signal_cancels_the_job_and_its_process_ends(start: Start, iris: Iris, number: int, code: int):
    process = start("run", "--name", f"signal-{number}", "--", "sh", "-c", "echo $$; exec sleep 100")
    assert process.stdout is not None
    handle = os.pidfd_open(int(process.stdout.readline()))
    process.send_signal(number)
    assert process.wait() == code
    assert ends(handle)
    assert json.loads(iris("job", "describe", f"signal-{number}", "-o", "json").out)["state"] == "cancelled"


def test_a_second_ctrl_c_leaves_a_controller_that_does_not_answer(
    cluster: dict[str, str], start: Start, iris: Iris, monkeypatch: pytest.MonkeyPatch
):
    port = int(cluster["IRIS_CONTROLLER"].rpartition(":")[2])
    monkeypatch.setenv("IRIS_TOKEN", Path(token_file(cluster, port)).read_text())
    with Wire(port) as wire:
        where = ("--controller", f"http://127.0.0.1:{wire.port}", "--no-bundle")
        process = start("run", *where, "--name", "unheard", "--", "sh", "-c", "echo up; exec sleep infinity")
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "up\n"
        wire.hold()
        process.send_signal(signal.SIGINT)
        assert any(line.startswith("cancelling /") for line in process.stderr)
        process.send_signal(signal.SIGINT)
        # Its own patience with the controller is half a minute.
        assert process.wait(timeout=20) == Exit.INTERRUPTED
    iris("job", "cancel", "unheard", "--yes")


def test_ctrl_c_is_heard_while_a_job_is_submitted(start: Start):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = start("run", "--no-bundle", "--controller", address, "--", "true")
        assert process.stderr is not None
        with silent.accept()[0] as asked:
            assert asked.recv(1)
            process.send_signal(signal.SIGINT)
            assert process.stderr.readline() == "cancelling it once it is submitted\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) == Exit.INTERRUPTED


def test_a_job_whose_words_nobody_reads_is_cancelled(start: Start, iris: Iris):
    process = start("run", "--name", "unread", "--", "sh", "-c", "while echo $$; do sleep 0.1; done")
    assert process.stdout is not None
    handle = os.pidfd_open(int(process.stdout.readline()))
    process.stdout.close()
    assert process.wait() == Exit.BROKEN_PIPE
    assert ends(handle)
    assert json.loads(iris("job", "describe", "unread", "-o", "json").out)["state"] == "cancelled"


def test_some_tasks_may_fail_where_that_is_said(iris: Iris):
    command = ("--no-bundle", "--replicas", "2", "--", "sh", "-c", "exit $IRIS_TASK_INDEX")
    assert iris("run", *command).code == 1
    assert iris("run", "--max-failed-tasks", "1", *command).code == 0


@pytest.mark.parametrize(
    "said", [("--key", "nightly", "--name", "nightly"), ("--key", "weekly")], ids=["named", "not named"]
)
def test_the_same_key_is_the_same_job(iris: Iris, said: tuple[str, ...]):
    command = ("run", "--no-bundle", "--detach", "-o", "json", *said, "--", "true")
    first, second = (json.loads(iris(*command).out)["id"] for _ in range(2))
    assert first == second


def test_a_port_is_told_by_its_name(iris: Iris):
    done = iris("run", "--no-bundle", "--port", "web", "--", "sh", "-c", "echo $IRIS_PORT_WEB")
    assert done.out.strip().isdecimal()


@pytest.mark.parametrize("limit", ["300ms", "0.0000001"])
def test_what_runs_too_long_is_a_timeout(iris: Iris, limit: str):
    assert iris("run", "--timeout", limit, "--", "sleep", "30").code == Exit.TIMEOUT


def test_a_job_that_waits_says_why_and_gives_up_when_told_to(iris: Iris, start: Start):
    cores = str(os.cpu_count())
    assert iris("run", "--name", "busy", "--cpu", cores, "--detach", "--", "sleep", "100").code == 0
    try:
        process = start("run", "--cpu", cores, "--no-bundle", "--", "true")
        assert process.stderr is not None
        assert any(line.startswith("waiting: ") for line in process.stderr)
        late = iris("run", "--cpu", cores, "--no-bundle", "--scheduling-timeout", "200ms", "--", "true")
        assert late.code == Exit.TIMEOUT
    finally:
        iris("job", "cancel", "busy", "--yes")
    assert process.wait() == 0


def test_what_can_never_run_is_refused_as_not_started(iris: Iris):
    done = iris("run", "--gpu", "H100:8", "-o", "json", "--", "true")
    assert (done.code, done.out) == (Exit.NOT_STARTED, "")
    assert json.loads(done.err.splitlines()[-1])["error"]["code"] == "iris.infeasible"


@pytest.mark.parametrize(
    "wrong",
    [
        ["--memory", "lots"],
        ["--timeout", "soon"],
        ["--env", "NAME"],
        ["--priority", "batsch"],
        ["--require", "=="],
        ["--gpu", "-1"],
        ["--package", ""],
        ["--port", "a b"],
        ["--name", "a b"],
        ["--no-such-option"],
    ],
    ids=" ".join,
)
def test_a_wrong_option_is_refused_before_anything_is_done(iris: Iris, wrong: list[str]):
    before = iris("job", "list", "--all", "-o", "json").out
    done = iris("run", *wrong, "--", "true")
    assert (done.code, done.out) == (Exit.NOT_STARTED, "")
    assert "error: " in done.err
    assert iris("job", "list", "--all", "-o", "json").out == before


def test_a_program_that_is_not_there_is_not_started(iris: Iris):
    done = iris("run", "--", "/no/such/program")
    assert done.code == Exit.NOT_STARTED
    assert "/no/such/program" in done.err


def test_a_dry_run_asks_the_controller_and_leaves_no_job(iris: Iris):
    shown = json.loads(iris("run", "--dry-run", "--name", "dry", "-o", "json", "--", "true", "x").out)
    assert (shown["id"], shown["command"], shown["replicas"]) == ("", ["true", "x"], 1)
    assert iris("job", "describe", "dry").code == Exit.NOT_FOUND
    assert iris("run", "--dry-run", "--gpu", "H100:8", "--", "true").code == Exit.NOT_STARTED


def test_a_detached_job_goes_on_by_itself(iris: Iris):
    shown = json.loads(
        iris("run", "--detach", "--name", "alone", "-o", "json", "--", "sh", "-c", "exit 3").out
    )
    assert shown["name"].endswith("/alone")
    assert iris("job", "wait", shown["id"]).code == 3


def test_an_unchanged_bundle_is_sent_once(iris: Iris, environment: Path):
    (environment / "once.txt").write_text(os.urandom(8).hex())
    assert ", sent" in iris("run", "--", "true").err
    assert ", unchanged" in iris("run", "--", "true").err
    assert "bundle" not in iris("run", "--no-bundle", "--", "test", "!", "-e", "once.txt").err


def test_files_for_a_job_that_is_refused_are_not_sent(iris: Iris, environment: Path):
    (environment / "unsent.txt").write_text(os.urandom(8).hex())
    assert iris("run", "--no-bundle", "--detach", "--name", "held", "--", "sleep", "100").code == 0
    for wrong in (["--name", "a b"], ["--name", "held"], ["--gpu", "H100:8"]):
        done = iris("run", *wrong, "--", "true")
        assert (done.code, done.out) == (Exit.NOT_STARTED, "")
        assert "bundle" not in done.err
        assert iris("run", *wrong, "--dry-run", "--", "true").code == Exit.NOT_STARTED
    iris("job", "cancel", "held", "--yes")
    assert ", sent" in iris("run", "--", "true").err


def test_a_long_upload_tells_how_far_it_is(iris: Iris, environment: Path):
    (environment / "data.bin").write_bytes(os.urandom(5_000_000))
    done = iris("run", "--", "test", "-s", "data.bin")
    assert done.code == 0
    assert "bundle, KiB: started" in done.err
    assert "bundle, KiB: done" in done.err
