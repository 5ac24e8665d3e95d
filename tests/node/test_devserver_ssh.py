"""SSH into servers of images that know nothing of it, with a real client."""

import json
import subprocess
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from neorion.devservers.decide import PROBE, ActivitySource, read
from neorion.drydock.cluster import Cluster
from neorion.drydock.images import BuildRequest, ImageName, ImageStore, Registry, build
from tests.node.devctl_terminal import LONG_WORK, Person
from tests.node.devservers import PROGRAM, ROOT, Devctl, operated
from tests.node.pods import NEEDS

pytestmark = [
    NEEDS,
    pytest.mark.needs("ssh", "mmdebstrap"),
    # The first run makes a small Debian.
    pytest.mark.timeout(600),
]

TOOLS = "devserver-tools:test"
# As root without a libc to speak of, and as somebody else with another one.
IMAGES = {"small": "FROM busybox\n", "plain": "FROM debian:bookworm-slim\nUSER 1000\n"}


async def _give(cluster: Cluster, folder: Path, name: str) -> str:
    store = ImageStore.of(cluster.shelf)
    made = await build(store, BuildRequest(folder, ImageName.parse(name)))
    await store.push(made, Registry.of(cluster.layout).address)
    return made


@pytest.fixture(scope="module")
def devctl(node_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Generator[Devctl]:
    anyio.run(_give, node_cluster, ROOT / "infra/docker/devserver-tools", TOOLS)
    for name, recipe in IMAGES.items():
        folder = tmp_path_factory.mktemp(name)
        (folder / "Dockerfile").write_text(recipe)
        anyio.run(_give, node_cluster, folder, f"{name}:test")
    with operated(node_cluster, tmp_path_factory.mktemp("operator"), tools_image=TOOLS) as devctl:
        yield devctl


@dataclass(frozen=True)
class Keyring:
    """A person's home with a key of their own."""

    home: Path

    @property
    def public(self) -> str:
        return f"{self.home}/.ssh/id_ed25519.pub"


@pytest.fixture(scope="module")
def keyring(tmp_path_factory: pytest.TempPathFactory) -> Keyring:
    home = tmp_path_factory.mktemp("home")
    (home / ".ssh").mkdir(mode=0o700)
    key = home / ".ssh/id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    return Keyring(home)


@pytest.mark.parametrize("image", IMAGES)
def test_ssh_leads_into_any_image_with_the_users_own_client(devctl: Devctl, keyring: Keyring, image: str):
    devctl.good(
        "create",
        image,
        "--image",
        f"{image}:test",
        "--ssh-key",
        keyring.public,
        "--home-size",
        "1Gi",
        "--wait",
    )
    status = json.loads(devctl.kubectl("get", "devserver", image, "-o", "json"))["status"]
    assert status["sshEndpoint"] == f"{image}-ssh.{devctl.namespace}.svc:22"
    assert "True" in {one["status"] for one in status["conditions"] if one["type"] == "SSHReady"}

    env = devctl.env | {"HOME": str(keyring.home)}
    script = 'test -n "$SSH_CONNECTION" || exit 3; pwd; echo $DEVSERVER_NAME; echo kept > by-ssh; exit 4\n'
    done = subprocess.run(
        [*PROGRAM, "ssh", image], input=script, capture_output=True, text=True, check=False, env=env
    )
    assert (done.returncode, done.stdout) == (4, f"/home/dev\n{image}\n"), done.stderr
    assert devctl.good("exec", image, "--", "cat", "by-ssh") == "kept\n"

    person = Person.start([*PROGRAM, "ssh", image], env)
    person.resize(30, 100)
    person.type("until stty size | grep -q '30 100'; do sleep 0.1; done; echo ssh''=${SSH_TTY:+yes}\n")
    person.see("ssh=yes")
    seen = read(devctl.good("exec", image, "--", "sh", "-c", PROBE))
    assert seen is not None
    assert {ActivitySource.SESSION, ActivitySource.TERMINAL} <= {source for source, _ in seen.ages}
    person.type(LONG_WORK)
    person.see("begun")
    person.type("\x03")
    person.type("exit 9\n")
    assert person.exit_code() == 9
    # Who has no key that fits comes in through the cluster, as before.
    assert devctl.good("ssh", image, say='echo "${SSH_CONNECTION:-by exec}"\n') == "by exec\n"

    before = status["sshHostKey"]
    devctl.good("stop", image, "--yes")
    devctl.good("start", image)
    again = json.loads(devctl.kubectl("get", "devserver", image, "-o", "json"))["status"]
    assert again["sshHostKey"] == before
    done = subprocess.run(
        [*PROGRAM, "ssh", image], input="cat by-ssh\n", capture_output=True, text=True, check=False, env=env
    )
    assert (done.returncode, done.stdout) == (0, "kept\n"), done.stderr
    devctl.good("delete", image, "--yes")


def test_a_server_without_ssh_has_none(devctl: Devctl):
    manifest = {
        "apiVersion": "devservers.io/v1",
        "kind": "DevServer",
        "metadata": {"name": "closed"},
        "spec": {"flavor": "cpu-small", "enableSSH": False, "persistentHomeSize": "1Gi"},
    }
    devctl.kubectl("apply", "-f", "-", say=json.dumps(manifest))
    devctl.until_phase("closed", "Running")
    status = json.loads(devctl.kubectl("get", "devserver", "closed", "-o", "json"))["status"]
    assert "sshEndpoint" not in status
    assert devctl.good("exec", "closed", "--", "sh", "-c", "ls /opt/devserver") == "bin\n"
    devctl.good("delete", "closed", "--yes")


def test_ranks_log_in_to_each_other_and_to_no_other_server(devctl: Devctl):
    for name, extra in (("pair", ["--distributed", "--replicas", "2"]), ("alone", [])):
        devctl.good("create", name, "--image", "small:test", "--home-size", "1Gi", *extra, "--wait")
    login = "/opt/devserver/bin/rank-ssh"
    assert devctl.good("exec", "pair", "--rank", "0", "--", login, "1", "hostname") == "pair-1\n"
    assert devctl.good("exec", "pair", "--rank", "1", "--", login, "0", "echo $PET_NODE_RANK") == "0\n"

    def by_address(server: str) -> int:
        """The exit code of a login from the first rank with its key, whatever the host key."""
        selector = f"devservers.io/server={server}"
        pods = json.loads(devctl.kubectl("get", "pods", "-l", selector, "-o", "json"))["items"]
        options = ["-i", "/opt/devserver/run/host_key", "-p", "2222", "-o", "BatchMode=yes"]
        options += ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
        target = f"dev@{pods[-1]['status']['podIP']}"
        return devctl("exec", "pair", "--", login, *options, target, "true").returncode

    assert by_address("pair") == 0
    assert by_address("alone") == 255
    assert devctl("exec", "alone", "--", login, "0", "true").returncode == 69
    for name in ("pair", "alone"):
        devctl.good("delete", name, "--yes")
