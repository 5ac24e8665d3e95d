"""From an empty cluster to a user's server, through the loss of the operator that leads, to nothing left."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.images import BUSYBOX, BuildRequest, ImageName, ImageStore, Registry, build, provide
from tests.node.pods import NEEDS

# The first build of the image fetches its packages.
pytestmark = [NEEDS, pytest.mark.needs("drydock", "mmdebstrap", "ssh"), pytest.mark.timeout(900)]

ROOT = Path(__file__).parent.parent.parent
# Of this checkout: two of them may be tested at the same time.
NAME = f"install-{hashlib.sha256(str(Path(__file__).parent).encode()).hexdigest()[:8]}"
PROGRAM = [sys.executable, "-c", "from neorion.devservers.devctl import main; main()"]
SYSTEM = "devservers-system"
IMAGE = "devservers-operator:dev"
TOOLS = "devserver-tools:dev"


@dataclass(frozen=True)
class Person:
    """Somebody with a kubeconfig, at a terminal."""

    cluster: Cluster
    kubeconfig: Path

    def devctl(self, *words: str, say: str = "") -> str:
        home = str(self.kubeconfig.parent)
        env = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "TERM": "dumb", "HOME": home}
        done = subprocess.run(
            [*PROGRAM, *words], input=say, capture_output=True, text=True, check=False, env=env
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def kubectl(self, *words: str) -> str:
        command = [str(self.cluster.shelf.path("kubectl")), f"--kubeconfig={self.kubeconfig}", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def get(self, *words: str) -> Any:
        return json.loads(self.kubectl("get", *words, "-o", "json"))


async def _give_images(cluster: Cluster) -> None:
    store, registry = ImageStore.of(cluster.shelf), Registry.of(cluster.layout).address
    recipe = ROOT / "infra/docker/devservers-operator/Dockerfile"
    operator = await build(store, BuildRequest(ROOT, ImageName.parse(IMAGE), recipe))
    tools = await build(store, BuildRequest(ROOT / "infra/docker/devserver-tools", ImageName.parse(TOOLS)))
    await provide(store, [BUSYBOX.name])
    for name in (operator, tools, BUSYBOX.name):
        await store.push(name, registry)


@pytest.fixture
def admin() -> Generator[Person]:
    """Of a cluster of two nodes in which nothing is installed."""
    yard = ClusterManager.of()
    try:
        cluster = anyio.run(yard.up, NAME, ClusterOptions(nodes=2))
        anyio.run(_give_images, cluster)
        yield Person(cluster, cluster.kubeconfig)
    finally:
        anyio.run(yard.down, NAME)


def leader(admin: Person) -> str:
    """The pod whose process holds the lease."""
    holder = admin.get("lease", "devservers-operator", "-n", SYSTEM)["spec"]["holderIdentity"]
    return holder.partition("_")[0]


def follow_until_another_leads(admin: Person, gone: str) -> str:
    """Every change of the lease is told, so nothing has to be asked twice."""
    words = ["get", "lease", "devservers-operator", "-n", SYSTEM, "--watch"]
    words += ["-o", r"jsonpath={.spec.holderIdentity}{'\n'}"]
    command = [str(admin.cluster.shelf.path("kubectl")), f"--kubeconfig={admin.kubeconfig}", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        try:
            return next(
                holder
                for line in watch.stdout
                if (holder := line.strip().partition("_")[0]) not in {"", gone}
            )
        finally:
            watch.terminate()


def figures(admin: Person) -> str:
    """The operator's figures as Prometheus reads them: its network policy lets in the namespace of monitoring alone."""
    url = f"http://devservers-operator.{SYSTEM}.svc.cluster.local:8080/metrics"
    admin.kubectl("create", "namespace", "monitoring")
    reader = ("reader", "-n", "monitoring")
    admin.kubectl("run", *reader, "--image=busybox", "--restart=Never", "--", "sleep", "600")
    admin.kubectl("wait", "--for=condition=Ready", "pod", *reader, "--timeout=120s")
    # The policy and the Service learn of a new Pod a moment after it is Ready.
    script = f"for _ in $(seq 100); do timeout 5 wget -qO- {url} && exit; sleep 0.2; done; exit 1"
    found = admin.kubectl("exec", *reader, "--", "sh", "-c", script)
    admin.kubectl("delete", "namespace", "monitoring", "--wait=false")
    return found


def test_a_cluster_gets_an_operator_that_survives_its_leader_and_leaves_nothing(
    admin: Person, tmp_path: Path
):
    admin.devctl("install", "--timeout", "4m")
    pods = admin.get("pods", "-n", SYSTEM, "-l", "app=devservers-operator")["items"]
    assert len({pod["spec"]["nodeName"] for pod in pods}) == len(pods) == 2
    admin.kubectl("wait", "--for=create", "devserverflavor/cpu-small", "--timeout=180s")

    admin.devctl("admin", "user", "add", "ann")
    (tmp_path / "ann").write_text(admin.devctl("admin", "user", "kubeconfig", "ann"))
    ann = Person(admin.cluster, tmp_path / "ann")
    (tmp_path / ".ssh").mkdir(mode=0o700)
    key = tmp_path / ".ssh/id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    made = ["create", "box", "--image", "busybox", "--home-size", "1Gi", "--ssh-key", f"{key}.pub", "--wait"]
    ann.devctl(*made)
    assert ann.devctl("exec", "box", "--", "sh", "-c", "echo kept > file; cat file") == "kept\n"
    # By SSH, as installed: nothing was told to the operator by hand.
    assert ann.devctl("ssh", "box", say='test -n "$SSH_CONNECTION" && cat file\n') == "kept\n"

    first = leader(admin)
    admin.kubectl("delete", "pod", first, "-n", SYSTEM, "--grace-period=0", "--force")
    assert follow_until_another_leads(admin, first) != first
    ann.devctl("stop", "box", "--yes")
    # Whoever deletes the host key costs the server no start, and devctl knows the next one.
    ann.kubectl("delete", "secret", "box-ssh-host")
    ann.devctl("start", "box")
    assert ann.devctl("ssh", "box", say='test -n "$SSH_CONNECTION" && cat file\n') == "kept\n"
    assert "HostKeyChanged" in ann.devctl("events", "box")
    assert "neorion_controller_reconciles_total" in figures(admin)

    # By hand, and all at once: the operator's right to write there may go before the server does.
    admin.kubectl("delete", "namespace", "dev-ann", "--timeout=120s")
    admin.devctl("uninstall", "--purge", "--yes")
    assert "devservers" not in admin.kubectl("api-resources", "--no-headers")
    assert admin.get("namespaces", "-l", "app.kubernetes.io/part-of=devservers")["items"] == []
