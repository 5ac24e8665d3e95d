"""An installation of iris on real nodes by `iris cluster up`, which a client outside of the cluster reaches."""

import os
import sys
from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import yaml

from neorion.iris.client import AsyncIrisClient
from tests.node.pods import Kubectl

WORKER = "ghcr.io/marin-community/iris-worker"


def cluster_file(namespace: str, **change: Any) -> dict[str, Any]:
    """One worker on each of two nodes, which come and go in seconds. `change` replaces whole sections."""
    usual: dict[str, Any] = {
        "platform": {"kubernetes": {"namespace": namespace, "image_pull_secrets": [], "stop_grace": "2s"}},
        "controller": {"kubernetes": {}, "worker_timeout": "10s"},
        "defaults": {
            "bootstrap": {"docker_image": WORKER},
            "timeouts": {"boot_timeout": "5m", "init_timeout": "2m"},
            "autoscaler": {
                "evaluation_interval": "1s",
                "scale_up_delay": 0,
                "scale_down_delay": "3s",
                "startup_grace_period": "5s",
            },
        },
        "scale_groups": {"nodes": group()},
    }
    return {**usual, **change}


def group(
    machines: int = 1, runtime: str = "process", selector: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A machine has room for two tasks of 650m, and a node for one machine."""
    return {
        "accelerator_type": "cpu",
        "num_vms": machines,
        "resources": {"cpu": "1300m", "ram": "2Gi"},
        "max_slices": 2,
        "runtime": runtime,
        "slice_template": {"kubernetes": {"node_selector": dict(selector or {})}},
    }


@dataclass(frozen=True, slots=True)
class Installation:
    """One installation, and what its operator does with it."""

    kubectl: Kubectl
    config: Path

    async def iris(self, verb: str, *options: str) -> None:
        """`iris cluster VERB`, without the variables of the controller."""
        command = [str(Path(sys.executable).with_name("iris")), "cluster", verb, "--config", str(self.config)]
        command += ["--kubeconfig", str(self.kubectl.cluster.kubeconfig), *options]
        env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        done = await anyio.run_process(command, env=env, check=False)
        assert done.returncode == 0, done.stderr.decode()

    async def leader(self) -> dict[str, Any]:
        """The controller's Pod that is ready."""
        pods = (await self.kubectl.get("pods", "--selector=app=iris-controller"))["items"]
        (ready,) = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"] and is_ready(pod)]
        return ready

    async def workers(self) -> list[dict[str, Any]]:
        return (await self.kubectl.get("pods", "--selector=iris-worker-number"))["items"]

    async def left(self) -> list[str]:
        """What there is of any slice."""
        found = (await self.kubectl.get("pods,secrets", "--selector=iris-managed=true"))["items"]
        return [f"{one['kind']} {one['metadata']['name']}" for one in found]

    async def endpoint(self) -> tuple[str, str]:
        """Its URL and the administrator's token. This machine reaches the addresses of Services."""
        service = await self.kubectl.get("service", "iris-controller-svc")
        inside = ["exec", (await self.leader())["metadata"]["name"], "--"]
        token = await self.kubectl(*inside, "cat", "/var/lib/iris/.local/state/iris/admin.token")
        return f"https://{service['spec']['clusterIP']}:10000", token.strip()

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[AsyncIrisClient]:
        url, token = await self.endpoint()
        async with AsyncIrisClient.remote(url, token=token) as client:
            yield client


@asynccontextmanager
async def installed(
    kubectl: Kubectl, folder: Path, file: Mapping[str, Any], variables: Mapping[str, str] | None = None
) -> AsyncGenerator[Installation]:
    """Up, and afterwards down without a trace. `variables` are those of the controller."""
    config = folder / "cluster.yaml"
    config.write_text(yaml.safe_dump(dict(file)))
    found = Installation(kubectl, config)
    if variables:
        data = {name: b64encode(value.encode()).decode() for name, value in variables.items()}
        meta = {"name": "iris-controller-env"}
        await kubectl.apply({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})
    try:
        await found.iris("up")
        yield found
    finally:
        await found.iris("down", "--yes", "--purge")


def is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
