"""How long people look at nothing: from the start of `devctl` to the first line it writes, beside kubectl's on the same cluster."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio

from bench.devservers.operator import SPEC, prepare
from bench.devservers.sides import NAMESPACE
from bench.kit import Report
from neorion.devservers.model.objects import SERVERS
from neorion.drydock.cluster import Cluster
from neorion.drydock.yard import Wishes, Yard
from neorion.keel.kube.client import connect, read_kubeconfig

ROUNDS = 11
_DEVCTL = [str(Path(sys.executable).parent / "devctl")]


def first_line_ms(command: list[str], env: dict[str, str]) -> float:
    """Of what it says or shows. What it does after that is of no interest: it is ended."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)
    assert process.stdout is not None
    line = process.stdout.readline()
    took = (time.perf_counter() - began) * 1e3
    process.kill()
    process.wait()
    process.stdout.close()
    if not line.strip() or line.startswith(b"error"):
        raise RuntimeError(f"{command}: {line.decode()}")
    return took


def compare(report: Report, cluster: Cluster) -> None:
    env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PYTHONDONTWRITEBYTECODE": ""}
    kubectl = [str(cluster.shelf.path("kubectl"))]
    made = iter(range(10_000))

    def devctl(*words: str) -> Callable[[], float]:
        return lambda: first_line_ms([*_DEVCTL, *words], env)

    def theirs(*words: str) -> tuple[str, Callable[[], float]]:
        return f"kubectl {words[0]}", lambda: first_line_ms([*kubectl, *words], env)

    def create() -> float:
        return devctl("create", f"new-{next(made)}", "bench", "-n", NAMESPACE, "--wait")()

    get = theirs("get", "devservers", "-n", NAMESPACE)
    report.compare("devctl --help", "ms", devctl("--help"), theirs("--help"), ROUNDS)
    report.compare("devctl list", "ms", devctl("list", "-n", NAMESPACE), get, ROUNDS)
    report.compare("devctl create --wait", "ms", create, get, ROUNDS)


async def furnish(cluster: Cluster) -> None:
    async with connect(read_kubeconfig([cluster.kubeconfig]).cluster(), "bench-people/1") as api:
        await prepare(cluster, api)
        await api.create(SERVERS, {"metadata": {"name": "one", "namespace": NAMESPACE}, "spec": dict(SPEC)})


async def measure(report: Report) -> None:
    async with Yard.of().cluster("bench-devservers-paint", Wishes()) as cluster:
        await furnish(cluster)
        await anyio.to_thread.run_sync(compare, report, cluster)


def run(report: Report) -> None:
    anyio.run(measure, report)
