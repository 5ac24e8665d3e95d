"""How long people look at nothing: from the start of `devctl` to the first line it writes, beside kubectl's on the same cluster."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import anyio

from bench.devservers.operator import SPEC, prepare
from bench.devservers.sides import NAMESPACE
from bench.kit import Report
from neorion.devservers.model.kube_types import DEVSERVERS
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.keel.kube.client import connect, read_kubeconfig

ROUNDS = 11
Eye = Callable[[list[str], dict[str, str]], "Look"]
_DEVCTL = str(Path(sys.executable).parent / "devctl")


@dataclass(frozen=True, slots=True)
class Look:
    """What passed before the first line was there, and the CPU of it: on a busy machine only that can be compared."""

    wall_ms: float
    cpu_ms: float


def first_line(command: list[str], env: dict[str, str]) -> Look:
    """Of what it says or shows. What it does after that is of no interest: it is ended."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)
    assert process.stdout is not None
    line = process.stdout.readline()
    wall = time.perf_counter() - began
    # Not by `process.kill`, which reaps one that has ended, and its figures with it.
    os.kill(process.pid, signal.SIGKILL)
    _, process.returncode, used = os.wait4(process.pid, 0)
    process.stdout.close()
    if not line.strip() or line.startswith(b"error"):
        raise RuntimeError(f"{command}: {line.decode()}")
    return Look(wall * 1e3, (used.ru_utime + used.ru_stime) * 1e3)


def first_sight(command: list[str], env: dict[str, str]) -> Look:
    """Of anything at all on a terminal."""
    began = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], command, {**env, "TERM": "xterm"})  # noqa: S606 -- the command is ours
    seen = os.read(terminal, 4096)
    wall = time.perf_counter() - began
    os.kill(pid, signal.SIGKILL)
    _, _, used = os.wait4(pid, 0)
    os.close(terminal)
    if not seen.strip() or seen.startswith(b"error"):
        raise RuntimeError(f"{command}: {seen.decode()}")
    return Look(wall * 1e3, (used.ru_utime + used.ru_stime) * 1e3)


def compare(report: Report, cluster: Cluster) -> None:
    env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PYTHONDONTWRITEBYTECODE": ""}
    kubectl, there = str(cluster.shelf.path("kubectl")), ["-n", NAMESPACE]
    numbers = iter(range(1_000_000))
    get = [kubectl, "get", "devservers", *there]
    listing = [_DEVCTL, "list", *there]
    sides: dict[str, tuple[Callable[[], list[str]], list[str], Eye]] = {
        "devctl --help, start → first line": (lambda: [_DEVCTL, "--help"], [kubectl, "--help"], first_line),
        "devctl list, start → first line": (lambda: listing, get, first_line),
        "devctl list on a terminal, start → first sight": (lambda: listing, get, first_sight),
        "devctl create --wait, start → first line": (
            lambda: [_DEVCTL, "create", f"new-{next(numbers)}", "bench", *there, "--wait"],
            get,
            first_line,
        ),
    }
    for name, (ours, theirs, look) in sides.items():
        looks = [(look(ours(), env), look(theirs, env)) for _ in range(ROUNDS)]
        for what, unit in (("wall_ms", "ms"), ("cpu_ms", "CPU-ms")):
            mine, others = (iter([getattr(pair[side], what) for pair in looks]) for side in (0, 1))
            report.compare(
                name,
                unit,
                lambda values=mine: next(values),
                (f"kubectl {theirs[1]}", lambda values=others: next(values)),
                ROUNDS,
            )


async def furnish(cluster: Cluster) -> None:
    async with connect(read_kubeconfig([cluster.kubeconfig]).cluster(), "bench-people/1") as api:
        await prepare(cluster, api)
        await api.create(
            DEVSERVERS, {"metadata": {"name": "one", "namespace": NAMESPACE}, "spec": dict(SPEC)}
        )


async def measure(report: Report) -> None:
    async with ClusterManager.of().cluster("bench-devservers-paint", ClusterOptions()) as cluster:
        await furnish(cluster)
        await anyio.to_thread.run_sync(compare, report, cluster)


def run(report: Report) -> None:
    anyio.run(measure, report)
