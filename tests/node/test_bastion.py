"""The SSH bastion on a real cluster: real users, real servers with sshd, the stock OpenSSH client."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from neorion.devservers.decide.audit import verify
from neorion.drydock.cluster import Cluster
from neorion.drydock.images import BuildRequest, ImageName, ImageStore, Registry, build
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock
from tests.node.devctl_terminal import LONG_WORK, Person
from tests.node.devservers import PATIENCE, ROOT, Devctl, operated
from tests.node.pods import NEEDS

pytestmark = [NEEDS, pytest.mark.needs("ssh", "mmdebstrap"), pytest.mark.timeout(900)]

TOOLS = "devserver-tools:test"
CONSOLE = "devservers-console:test"
USER = "robin"


async def _push_images(cluster: Cluster) -> None:
    store = ImageStore.of(cluster.shelf)
    recipe = ROOT / "infra/docker/devservers-console/Dockerfile"
    for request in (
        BuildRequest(ROOT / "infra/docker/devserver-tools", ImageName.parse(TOOLS)),
        BuildRequest(ROOT, ImageName.parse(CONSOLE), recipe),
    ):
        await store.push(await build(store, request), Registry.of(cluster.layout).address)


@dataclass(frozen=True)
class Entrance:
    """The bastion as a user reaches it."""

    folder: Path
    port: int
    devctl: Devctl

    def options(self) -> list[str]:
        known = self.folder / "known_hosts"
        given = [
            "-F",
            "none",
            "-i",
            str(self.folder / "key"),
            "-o",
            "IdentitiesOnly=yes",
            "-o",
            "LogLevel=ERROR",
        ]
        return [*given, "-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={known}"]

    def run(self, *command: str, say: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(command, input=say, capture_output=True, text=True, check=False, timeout=120)

    def ssh(self, login: str, *words: str, say: str = "") -> "subprocess.CompletedProcess[str]":
        where = ["-p", str(self.port), f"{login}@127.0.0.1"]
        return self.run("ssh", *self.options(), *where, *words, say=say)

    def jump(self, server: str, *words: str) -> "subprocess.CompletedProcess[str]":
        through = " ".join(["ssh", *self.options(), "-p", str(self.port), "-W", "%h:%p", f"{USER}@127.0.0.1"])
        return self.run("ssh", *self.options(), "-o", f"ProxyCommand={through}", f"dev@{server}", *words)


@contextmanager
def running(folder: Path, cluster: Cluster, *words: str) -> "Generator[subprocess.Popen[bytes]]":
    command = [sys.executable, "-m", "neorion.devservers", *words, "--kubeconfig", str(cluster.kubeconfig)]
    with (
        (folder / f"{words[0]}.log").open("w") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as made,
    ):
        try:
            yield made
        finally:
            made.terminate()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def until_listening(port: int) -> None:
    clock = SystemClock()
    end = clock.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            assert clock.monotonic() < end, "the bastion does not listen"
            anyio.run(clock.sleep, Duration.of(ms=100))
        else:
            return


@pytest.fixture(scope="module")
def entrance(node_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Generator[Entrance]:
    folder, port = tmp_path_factory.mktemp("bastion"), free_port()
    anyio.run(_push_images, node_cluster)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"], check=True)
    with ExitStack() as stack:
        stack.enter_context(operated(node_cluster, folder, tools_image=TOOLS, scope=f"dev-{USER}"))
        devctl = Devctl(node_cluster, f"dev-{USER}")
        system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "devservers-system"}}
        devctl.kubectl("apply", "-f", "-", say=json.dumps(system))
        stack.enter_context(running(folder, node_cluster, "user-controller"))
        user = {
            "apiVersion": "devservers.io/v1",
            "kind": "DevServerUser",
            "metadata": {"name": USER},
            "spec": {"keys": [(folder / "key.pub").read_text().strip()]},
        }
        devctl.kubectl("apply", "-f", "-", say=json.dumps(user))
        devctl.kubectl(
            "wait", f"devserveruser/{USER}", "--for=jsonpath={.status.phase}=Provisioned", PATIENCE
        )
        audit = str(folder / "audit.jsonl")
        options = ["--port", str(port), "--audit", audit, "--recordings", str(folder / "recordings")]
        options += ["--console-image", CONSOLE, "--replica", "bastion-0"]
        stack.enter_context(running(folder, node_cluster, "bastion", *options))
        devctl.good("create", "box", "--home-size", "1Gi", "--wait")
        until_listening(port)
        try:
            yield Entrance(folder, port, devctl)
        finally:
            devctl.good("delete", "box", "--yes")
            devctl.kubectl("delete", "devserveruser", USER)
            devctl.kubectl("delete", "namespace", f"dev-{USER}", "--timeout=120s")


def test_a_user_reaches_their_server_in_every_way(entrance: Entrance, tmp_path: Path):
    login = f"{USER}+box"
    done = entrance.ssh(login, "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")
    sent = tmp_path / "sent"
    sent.write_bytes(bytes(range(256)) * 4_000)
    place = f"{login}@127.0.0.1:file"
    copied = entrance.run("scp", *entrance.options(), "-P", str(entrance.port), str(sent), place)
    assert copied.returncode == 0, copied.stderr
    back = entrance.run("scp", *entrance.options(), "-P", str(entrance.port), place, str(tmp_path / "back"))
    assert back.returncode == 0, back.stderr
    assert (tmp_path / "back").read_bytes() == sent.read_bytes()
    jumped = entrance.jump("box", 'test -n "$SSH_CONNECTION" && wc -c < file')
    assert (jumped.returncode, jumped.stdout.strip()) == (0, "1024000"), jumped.stderr
    other = entrance.jump("box.dev-somebody", "true")
    assert other.returncode == 255


def test_a_server_that_sleeps_is_woken_by_whoever_connects(entrance: Entrance):
    for connect in (
        lambda: entrance.ssh(f"{USER}+box", "echo awake"),
        lambda: entrance.jump("box", "echo awake"),
    ):
        entrance.devctl.good("stop", "box", "--yes")
        done = connect()
        assert (done.returncode, done.stdout) == (0, "awake\n"), done.stderr


@contextmanager
def suspended(devctl: Devctl) -> Generator[None]:
    def change(value: str, phase: str) -> None:
        patch = f'{{"spec": {{"suspended": {value}}}}}'
        devctl.kubectl("patch", "devserveruser", USER, "--type=merge", "-p", patch)
        # The controller writes the phase after several writes of others: the bastion knows by then.
        devctl.kubectl("wait", f"devserveruser/{USER}", f"--for=jsonpath={{.status.phase}}={phase}", PATIENCE)

    change("true", "Suspended")
    try:
        yield
    finally:
        change("false", "Provisioned")


def test_a_login_without_a_server_lands_in_the_users_own_console(entrance: Entrance):
    done = entrance.ssh(USER, "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout) == (7, "out\n"), done.stderr
    assert done.stderr.endswith("err\n")
    listed = entrance.ssh(USER, "devctl list -o json")
    assert [one["name"] for one in json.loads(listed.stdout)] == ["box"], listed.stderr
    own = entrance.ssh(USER, f"kubectl get pods -n dev-{USER} -o name")
    assert "pod/console\n" in own.stdout, own.stderr
    for refused in (
        "kubectl create namespace test",
        "kubectl get pods -n kube-system",
        "kubectl get pods -n dev-somebody",
        f"kubectl create token user-{USER}",
        "kubectl get devserverusers",
    ):
        done = entrance.ssh(USER, refused)
        assert (done.returncode, done.stdout) == (1, ""), refused
        assert "forbidden" in done.stderr.lower(), done.stderr
    life = entrance.ssh(USER, "python3 - < /dev/stdin", say=TOKEN_LIFE)
    assert 0 < int(life.stdout) <= 3600 + 10, life.stderr


TOKEN_LIFE = """
import base64, json
token = open("/var/run/secrets/kubernetes.io/serviceaccount/token").read().split(".")[1]
claims = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
print(claims["exp"] - claims["iat"])
"""


def test_a_terminal_in_the_console_is_resized_interrupted_listed_killed_and_replayed(entrance: Entrance):
    command = ["ssh", *entrance.options(), "-tt", "-p", str(entrance.port), f"{USER}@127.0.0.1"]
    person = Person.start(["/usr/bin/env", *command], {**os.environ, "TERM": "xterm"})
    person.type("echo rea''dy\r")
    person.see("ready")
    person.resize(40, 120)
    # The size takes its own path through the API server.
    person.type('until [ "$(stty size)" = "40 120" ]; do sleep 0.1; done; echo re""sized\r')
    person.see("resized")
    person.type(LONG_WORK)
    person.see("begun")
    person.type("\x03")
    person.type("echo GITHUB_TOKEN=hun''ter2 af''ter\r")
    person.see("after")
    (session,) = json.loads(entrance.devctl.good("admin", "sessions", "list", "-o", "json"))
    assert (session["user"], session["server"], session["replica"]) == (USER, "", "bastion-0")
    entrance.devctl.good("admin", "sessions", "kill", session["name"], "--yes")
    assert person.exit_code() == 255
    (file,) = entrance.folder.glob(f"recordings/{session['name']}-*.cast")
    shown = entrance.devctl.good("admin", "sessions", "replay", str(file))
    assert "resized" in shown
    assert "GITHUB_TOKEN=[redacted] after" in shown
    assert "hunter2" not in shown
    entrance.devctl.good("admin", "audit", "verify", str(entrance.folder / "audit.jsonl"))


def test_files_are_copied_to_the_console(entrance: Entrance, tmp_path: Path):
    (tmp_path / "sent").write_bytes(bytes(range(256)) * 4_000)
    place = f"{USER}@127.0.0.1:file"
    copied = entrance.run("scp", *entrance.options(), "-P", str(entrance.port), str(tmp_path / "sent"), place)
    assert copied.returncode == 0, copied.stderr
    assert entrance.ssh(USER, "wc -c < file").stdout.strip() == "1024000"


@pytest.mark.fault(55)
def test_a_killed_bastion_loses_no_record_of_what_users_saw(entrance: Entrance, tmp_path: Path):
    """Killed while users log in and a terminal is recorded; the next process takes its port, its key and its log."""
    port, audit = free_port(), tmp_path / "audit.jsonl"
    options = ["--port", str(port), "--audit", str(audit), "--recordings", str(tmp_path / "recordings")]
    options += ["--console-image", CONSOLE, "--replica", "bastion-9"]
    ssh = [
        "ssh",
        *entrance.options(),
        "-o",
        f"UserKnownHostsFile={tmp_path / 'known_hosts'}",
        "-p",
        str(port),
    ]
    ssh = [word.replace("StrictHostKeyChecking=no", "StrictHostKeyChecking=accept-new") for word in ssh]
    place, cluster = f"{USER}@127.0.0.1", entrance.devctl.cluster
    with running(tmp_path, cluster, "bastion", *options) as bastion, ExitStack() as stack:
        until_listening(port)
        person = Person.start(["/usr/bin/env", *ssh, "-tt", place], {**os.environ, "TERM": "xterm"})
        person.type("echo rea''dy\r")
        person.see("ready")
        commands = ([*ssh, place, f"echo login-{number}; sleep 60"] for number in range(12))
        started = (subprocess.Popen(one, stdout=subprocess.PIPE, text=True) for one in commands)
        logins = [stack.enter_context(one) for one in started]
        outputs = [one.stdout for one in logins if one.stdout is not None]
        # Others are in the middle of their logins by now.
        seen = {outputs[0].readline().strip()}
        bastion.kill()
        bastion.wait()
        assert person.exit_code() == 255
        assert [login.wait(60) for login in logins] == [255] * 12
        # What a client got before the kill is left in its pipe.
        seen |= {line.strip() for output in outputs for line in output}
    written = {json.loads(line).get("command", "") for line in audit.read_bytes().splitlines()}
    assert seen - {""} <= {command.partition(";")[0].removeprefix("echo ") for command in written}
    (recording,) = (tmp_path / "recordings").glob("*.cast")
    assert "ready" in entrance.devctl.good("admin", "sessions", "replay", str(recording))
    with running(tmp_path, cluster, "bastion", *options):
        until_listening(port)
        done = entrance.run(*ssh, place, "echo again")
        assert (done.returncode, done.stdout) == (0, "again\n"), done.stderr
    head, flaws = verify(audit.read_bytes().splitlines())
    assert (flaws, head.number > len(seen)) == ([], True)


def test_a_suspended_user_is_out_and_the_log_is_whole(entrance: Entrance):
    login = f"{USER}+box"
    assert entrance.ssh(login, "true").returncode == 0
    assert entrance.ssh(USER, "true").returncode == 0
    with suspended(entrance.devctl):
        assert entrance.ssh(login, "true").returncode == 255
        # The console goes with the rights of its user.
        entrance.devctl.until_gone("pod/console")
    assert entrance.ssh(login, "true").returncode == 0
    content = (entrance.folder / "audit.jsonl").read_bytes()
    head, flaws = verify(content.splitlines())
    assert flaws == []
    events = [json.loads(line)["event"] for line in content.splitlines()[-head.number :]]
    first = events.index("login")
    assert "login" in events[events.index("refused", first) :]
