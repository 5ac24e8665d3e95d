"""`devctl` as a person uses it: a real operator, a real node, a real terminal."""

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from neorion.devservers.client import DevServer, KubeSelection
from neorion.devservers.model import Phase
from neorion.keel.base import Invalid, NotFound
from neorion.keel.kube.streams import ExecResult
from tests.node.devctl_terminal import LONG_WORK, Person
from tests.node.devservers import PROGRAM, Devctl
from tests.node.pods import NEEDS

pytestmark = [NEEDS, pytest.mark.timeout(480)]


@pytest.fixture(scope="module")
def box(devctl: Devctl) -> str:
    """A server that tests reach into and leave as it is."""
    devctl.good("create", "box", "--home-size", "1Gi", "--wait")
    return "box"


def test_the_way_of_a_server_is_told_step_by_step(devctl: Devctl, box: str):
    done = devctl(
        "create", "told", "cpu-small", "--home-size", "1Gi", "--time", "2h30m", "--wait", "-o", "json"
    )
    assert done.returncode == 0, done.stderr
    told = [line.split()[0] for line in done.stderr.splitlines() if line.startswith("  ")]
    # A step that takes seconds on a busy machine is told of as an obstacle too.
    assert [word for word in told if word != "waits"] == ["volume", "quota", "scheduled", "image", "ready"]
    record = json.loads(done.stdout)
    assert (record["name"], record["flavor"], record["phase"], record["owner"]) == (
        "told",
        "cpu-small",
        "Running",
        "ann",
    )
    assert devctl.good("list", "-o", "name").split() == [box, "told"]
    assert "its time is over then" in devctl.good("describe", "told")
    devctl.good("delete", "told", "--yes")
    assert devctl("describe", "told").returncode == 3


def test_a_file_outlives_a_change_of_flavor_and_a_stop(devctl: Devctl, box: str):
    del box
    devctl.good("create", "keeper", "--home-size", "1Gi", "--wait")
    devctl.good("exec", "keeper", "--", "sh", "-c", "echo kept > file")
    devctl.good("update", "keeper", "--flavor", "cpu-medium", "--yes")
    assert devctl.good("exec", "keeper", "--", "cat", "file") == "kept\n"
    devctl.good("stop", "keeper", "--yes")
    refused = devctl("exec", "keeper", "--", "true")
    assert refused.returncode == 125
    assert "keeper is stopped: a user stopped it." in refused.stderr
    assert "devctl start keeper" in devctl("doctor", "keeper").stdout
    devctl.good("start", "keeper")
    assert devctl.good("exec", "keeper", "--", "cat", "file") == "kept\n"
    devctl.good("delete", "keeper", "--yes")
    devctl.good("create", "keeper", "--home-size", "1Gi", "--wait")
    assert devctl.good("exec", "keeper", "--", "cat", "file") == "kept\n"
    devctl.good("delete", "keeper", "--yes")


def test_a_command_has_its_input_both_outputs_and_its_exit_code(devctl: Devctl, box: str):
    done = devctl("exec", box, "--", "sh", "-c", "cat; echo oops >&2; exit 7", say="given\n")
    assert (done.returncode, done.stdout, done.stderr) == (7, "given\n", "oops\n")
    assert devctl("exec", box, "ls", "--no-such-option").returncode == 1
    assert devctl("exec", box, "--", "no-such-program").returncode == 125
    large = "0123456789abcdef" * 100_000
    assert devctl.good("exec", box, "--", "cat", say=large) == large


def test_a_shell_that_is_given_a_script_runs_it(devctl: Devctl, box: str):
    done = devctl("ssh", box, say="echo hello; exit 4\n")
    assert (done.returncode, done.stdout) == (4, "hello\n")


def test_a_shell_on_a_terminal_feels_like_one(devctl: Devctl, box: str):
    person = Person.start([*PROGRAM, "ssh", box], devctl.env)
    person.resize(30, 100)
    person.see("# ")
    assert not person.has_echo()
    person.type("until stty size | grep -q '30 100'; do sleep 0.1; done; echo is''first\n")
    person.see("isfirst")
    person.resize(40, 120)
    person.type("until stty size | grep -q '40 120'; do sleep 0.1; done; echo is''second\n")
    person.see("issecond")
    # Ctrl-C ends the work and not the session.
    person.type(LONG_WORK)
    person.see("begun")
    person.type("\x03")
    person.see("# ")
    person.type("echo code $?\n")
    person.see("code 130")
    person.see("# ")
    person.type("sh -c 'exit 9'\n")
    # Ctrl-D means an end to a shell that reads; one that is still busy would take it for a character of its next line.
    person.see("# ")
    person.type("\x04")
    assert person.exit_code() == 9


def test_the_terminal_is_given_back_even_to_who_is_asked_to_go(devctl: Devctl, box: str):
    person = Person.start([*PROGRAM, "ssh", box], devctl.env)
    person.see("# ")
    assert not person.has_echo()
    os.kill(person.pid, signal.SIGTERM)
    assert person.exit_code() == 128 + signal.SIGTERM
    assert person.has_echo()


def test_files_are_copied_both_ways(devctl: Devctl, box: str, tmp_path: Path):
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub/data").write_bytes(bytes(range(256)) * 10_000)
    (tree / "run").write_text("#!/bin/sh\n")
    (tree / "run").chmod(0o755)
    (tree / "link").symlink_to("run")
    devctl.good("cp", str(tree), f"{box}:there")
    assert devctl.good("exec", box, "--", "sh", "-c", "test -x there/run && readlink there/link") == "run\n"
    devctl.good("cp", f"{box}:there", str(tmp_path / "back"))
    assert (tmp_path / "back/sub/data").read_bytes() == (tree / "sub/data").read_bytes()
    devctl.good("cp", str(tree / "run"), f"{box}:there/sub")
    assert devctl.good("exec", box, "--", "ls", "there/sub") == "data\nrun\n"
    missing = devctl("cp", f"{box}:no-such-file", str(tmp_path))
    assert (missing.returncode, "No such file" in missing.stderr) == (1, True)


def test_a_link_that_is_named_brings_what_it_leads_to(devctl: Devctl, box: str, tmp_path: Path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/step-9").write_text("weights")
    (tmp_path / "runs/latest").symlink_to("step-9")
    (tmp_path / "last").symlink_to("runs")
    devctl.good("cp", str(tmp_path / "runs/latest"), f"{box}:")
    devctl.good("cp", str(tmp_path / "last"), f"{box}:")
    asked = "test ! -L latest && cat latest last/step-9 && readlink last/latest"
    assert devctl.good("exec", box, "--", "sh", "-c", asked) == "weightsweightsstep-9\n"
    devctl.good("exec", box, "--", "ln", "-s", "last", "newest")
    for name in ("newest", "last/latest"):
        devctl.good("cp", f"{box}:{name}", str(tmp_path))
    assert not (tmp_path / "latest").is_symlink()
    assert (tmp_path / "latest").read_text() == (tmp_path / "newest/step-9").read_text() == "weights"
    assert (tmp_path / "newest/latest").readlink() == Path("step-9")


def test_a_link_out_of_a_tree_is_told_and_the_rest_of_it_arrives(devctl: Devctl, box: str, tmp_path: Path):
    made = (
        "mkdir -p env/bin && echo code > env/lib && ln -s /bin/sh env/bin/python && ln -s ../lib env/bin/lib"
    )
    devctl.good("exec", box, "--", "sh", "-c", made)
    done = devctl("cp", f"{box}:env", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "env/bin/python was left out: it is a link out of the copy, to /bin/sh." in done.stderr
    assert [path.name for path in (tmp_path / "env/bin").iterdir()] == ["lib"]
    assert (tmp_path / "env/bin/lib").read_text() == "code\n"


def test_a_port_leads_to_the_server_and_to_its_next_machine(devctl: Devctl, box: str):
    del box
    devctl.good("create", "web", "--home-size", "1Gi", "--wait")
    serve = "mkdir -p www; echo here > www/index.html; httpd -p 8080 -h www"
    devctl.good("exec", "web", "--", "sh", "-c", serve)
    with devctl.start("port-forward", "web", "0:8080") as forward:
        assert forward.stdout is not None
        port = int(forward.stdout.readline().split(" ")[0].rpartition(":")[2])
        assert b"here" in _fetch(port)
        devctl.good("stop", "web", "--yes")
        devctl.good("start", "web")
        devctl.good("exec", "web", "--", "sh", "-c", serve)
        while b"here" not in _fetch(port):
            pass
        forward.send_signal(signal.SIGINT)
        assert forward.wait() == 130
    devctl.good("delete", "web", "--yes")


def _fetch(port: int) -> bytes:
    """What is there; nothing while the port leads nowhere."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as stream:
            stream.sendall(b"GET / HTTP/1.0\r\n\r\n")
            found = b""
            while piece := stream.recv(4096):
                found += piece
            return found
    except OSError:
        return b""


def test_logs_events_costs_and_use_are_shown(devctl: Devctl, box: str):
    devctl.good("exec", box, "--", "sh", "-c", "echo written > /proc/1/fd/1")
    with devctl.start("logs", box, "--follow", "--tail", "1") as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "written\n"
        following.send_signal(signal.SIGINT)
    assert devctl.good("logs", box, "--tail", "1") == "written\n"
    assert "Ready" in {one["reason"] for one in json.loads(devctl.good("events", box, "-o", "json"))}
    assert json.loads(devctl.good("cost", box, "-o", "json"))["per_hour"] == "0.02"
    (reading,) = json.loads(devctl.good("monitor", box, "--once", "-o", "json"))
    assert (reading["server"]["phase"], reading["gpus"]) == ("Running", [])
    assert devctl("doctor", box).returncode == 0


def test_who_stops_waiting_leaves_the_server(devctl: Devctl, box: str):
    del box
    with devctl.start("create", "left", "--image", "no.such.registry/image", "--wait") as waiting:
        assert waiting.stderr is not None
        assert waiting.stderr.readline() == "Asking for left ...\n"
        assert waiting.stderr.readline() == "left is being made on cpu-small.\n"
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait() == 130
    assert "left" in devctl.good("list", "-o", "name").split()
    failed = devctl("start", "left")
    assert failed.returncode == 1
    assert "no.such.registry/image cannot be pulled" in failed.stderr
    assert devctl("doctor", "left").returncode == 1
    devctl.good("delete", "left", "--yes")


def test_what_the_operator_refuses_is_told_in_its_words(devctl: Devctl, box: str):
    del box
    devctl.good("create", "lost", "--home-size", "1Gi")
    devctl.change("lost", {"flavor": "no-such"})
    done = devctl("start", "lost")
    assert done.returncode == 1
    assert 'There is no flavor "no-such"' in done.stderr
    devctl.good("delete", "lost", "--yes")


def test_a_program_has_a_server_for_as_long_as_a_block_lasts(devctl: Devctl, box: str, tmp_path: Path):
    del box
    where: KubeSelection = {"namespace": devctl.namespace, "kubeconfig": devctl.cluster.kubeconfig}
    (tmp_path / "script").write_text("echo from the script")
    with DevServer.create("block", flavor="cpu-small", home_size="1Gi", time="1h", **where) as server:
        server.copy_to(tmp_path / "script", "script")
        done = server.exec(["sh", "script"])
        assert (done.code, done.stdout) == (0, b"from the script\n")
        server.copy_to(str(tmp_path / "script"), "new/folder/")
        assert server.exec("cd new/folder && ls && exit 3") == ExecResult(3, b"script\n", b"")
        with pytest.raises(Invalid, match="no command"):
            server.exec([])
        assert server.doctor().well
        before = server.status().deadline
        assert before is not None
        assert (server.extend("30m") - before.time).total_seconds() == 1800
        assert "Ready" in {one.reason for one in server.events()}
        cost = server.cost()
        assert cost is not None
        assert cost.per_hour == "0.02"
        server.stop()
        assert server.status().phase is Phase.STOPPED
        assert server.doctor().sentence == "block is stopped: a user stopped it."
        server.start()
        server.copy_from("script", tmp_path / "back")
        assert (tmp_path / "back").read_text() == "echo from the script"
    devctl.until_gone("devserver/block")
    with pytest.raises(NotFound), DevServer.get("block", **where):
        pass
