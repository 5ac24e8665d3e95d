"""Development servers on a real node: an operator in a namespace of its own, and `devctl` as a person types it."""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from anyio.from_thread import start_blocking_portal

from neorion.drydock.cluster import Cluster
from neorion.drydock.testing import namespace

ROOT = Path(__file__).parent.parent.parent
PROGRAM = [sys.executable, "-c", "from neorion.devservers.devctl import main; main()"]
# What a busy machine may need until something has happened in the cluster.
PATIENCE = "--timeout=180s"


@dataclass(frozen=True)
class Devctl:
    """The program in a namespace of its own, where an operator works."""

    cluster: Cluster
    namespace: str

    @property
    def env(self) -> dict[str, str]:
        settings = {"KUBECONFIG": str(self.cluster.kubeconfig), "DEVCTL_NAMESPACE": self.namespace}
        return {**os.environ, **settings, "TERM": "dumb", "USER": "ann"}

    def __call__(self, *words: str, say: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*PROGRAM, *words], input=say, capture_output=True, text=True, check=False, env=self.env
        )

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env
        )

    def good(self, *words: str, say: str = "") -> str:
        done = self(*words, say=say)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def kubectl(self, *words: str, say: str = "") -> str:
        """As the administrator."""
        shelf, config = self.cluster.shelf, self.cluster.kubeconfig
        command = [shelf.path("kubectl"), f"--kubeconfig={config}", f"--namespace={self.namespace}", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, input=say).stdout

    def change(self, server: str, spec: Mapping[str, Any]) -> None:
        """What no option of devctl says, written into the object itself."""
        self.kubectl("patch", "devserver", server, "--type=merge", "-p", json.dumps({"spec": spec}))

    def until_phase(self, server: str, phase: str) -> None:
        self.kubectl("wait", f"devserver/{server}", f"--for=jsonpath={{.status.phase}}={phase}", PATIENCE)

    def until_gone(self, thing: str) -> None:
        self.kubectl("wait", thing, "--for=delete", PATIENCE)


@contextmanager
def operated(cluster: Cluster, folder: Path, **file: Any) -> Generator[Devctl]:
    """A namespace with an operator that reads `file`; its log is in `folder`."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(namespace(cluster)) as name,
        (folder / "operator.log").open("w") as log,
    ):
        devctl = Devctl(cluster, name)
        devctl.kubectl("apply", "-f", str(ROOT / "infra/devservers/crds"))
        kinds = ("crd/devservers.devservers.io", "crd/devserverflavors.devservers.io")
        devctl.kubectl("wait", "--for=condition=Established", *kinds, PATIENCE)
        path = folder / "operator.yaml"
        base = {"default_image": "busybox", "namespace": name, "scope": name, "port": 0}
        path.write_text(yaml.safe_dump(base | file))
        command = [sys.executable, "-m", "neorion.devservers", "operator", "--config", str(path)]
        command += ["--kubeconfig", str(cluster.kubeconfig)]
        with subprocess.Popen(command, stdout=log, stderr=log) as operator:
            try:
                # The operator makes the first flavors when it has its lease.
                devctl.kubectl("wait", "--for=create", "devserverflavor/cpu-small", PATIENCE)
                yield devctl
            finally:
                operator.terminate()
