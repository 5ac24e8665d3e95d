"""The few things that tests do with pods, by the kubectl that a person would use."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from neorion.drydock.cluster import Cluster
from neorion.drydock.images import BUSYBOX, ImageStore, Registry, provide
from neorion.drydock.machine import ask
from neorion.drydock.node import Taint
from neorion.keel.base import Terminal

NEEDS = pytest.mark.needs(
    "root", "containerd", "runc", "nft", "conntrack", "ip", "host-local", "buildah", "docker-registry", "catatonit", "busybox",
)  # fmt: skip
# The first test of a run also waits for the cluster.
MINUTES = pytest.mark.timeout(360)


async def push_test_image(cluster: Cluster) -> None:
    """The one image that every pod of these tests runs."""
    store = ImageStore.of(cluster.shelf)
    await provide(store, [BUSYBOX.name])
    await store.push(BUSYBOX.name, Registry.of(cluster.layout).address)


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl in one namespace."""

    cluster: Cluster
    namespace: str

    @property
    def command(self) -> list[str | Path]:
        shelf, config = self.cluster.shelf, self.cluster.kubeconfig
        return [shelf.path("kubectl"), f"--kubeconfig={config}", f"--namespace={self.namespace}"]

    async def __call__(self, *words: str, say: str = "") -> str:
        return await ask([*self.command, *words], say=say)

    async def get(self, *words: str) -> Any:
        return json.loads(await self("get", *words, "-o", "json"))

    async def apply(self, *objects: dict[str, Any]) -> None:
        await self("apply", "-f", "-", say=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    async def run(self, *pods: dict[str, Any]) -> None:
        """Returns when all of them are Ready."""
        await self.apply(*pods)
        names = [f"pod/{pod['metadata']['name']}" for pod in pods]
        try:
            await self("wait", "--for=condition=Ready", "--timeout=180s", *names)
        except Terminal as error:
            error.add_note(await self("describe", *names))
            raise

    async def fetch(self, caller: str, url: str) -> str:
        """What a pod gets from there. Services reach a node's proxy a moment after their pods are Ready."""
        script = f"for _ in $(seq 200); do timeout 10 wget -qO- {url} && exit; sleep 0.2; done; exit 1"
        return await self("exec", caller, "--", "sh", "-c", script)

    async def until(self, what: str, path: str, value: str, seconds: int = 180) -> None:
        await self("wait", what, f"--for=jsonpath={path}={value}", f"--timeout={seconds}s")

    async def remove(self, *words: str) -> None:
        await self("delete", "--now", *words)


def pod(name: str, script: str, node: str = "", **spec: Any) -> dict[str, Any]:
    """A pod of one shell script."""
    container: dict[str, Any] = {"name": "main", "image": "busybox", "command": ["sh", "-c", script]}
    container |= spec.pop("container", {})
    where = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container], **where, **spec},
    }


def service(name: str, port: int) -> dict[str, Any]:
    """In front of the pod of the same name."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": port}]},
    }


def claim(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


def with_claim(name: str, path: str, **more: Any) -> dict[str, Any]:
    """What a pod's spec needs to have the claim's volume at `path`."""
    return {
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}],
        "container": {"volumeMounts": [{"name": "data", "mountPath": path}], **more},
    }


# Of every node that a test adds to the cluster that all share, and takes away again: the scheduler would give it to
# somebody else's pods. A pod that names its node needs no toleration.
ALONE = Taint.parse("test=alone:NoSchedule")
TOLERANT: dict[str, Any] = {"tolerations": [{"key": ALONE.key, "operator": "Exists"}]}

SLEEP = "exec sleep 100000"


def web(words: Sequence[str] = ("hello",)) -> str:
    return (
        f"mkdir /tmp/www && echo {' '.join(words)} > /tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www"
    )
