"""What it takes to know many Pods: a worker of its attempts' Pods, and a controller of its slices' Pods, each in a fresh process."""

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import process_time

import anyio

from bench.kit import Report
from bench.process import memory_mb
from neorion.drydock.cluster import Cluster
from neorion.iris.adapters.platforms.kubernetes import GroupTemplate, KubernetesPlatform, KubernetesSettings
from neorion.iris.adapters.runtimes.kubernetes import PodEngine, PodSettings
from neorion.iris.model import Resources, SliceId
from neorion.iris.ports import SliceRequest
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.kube.client import Client, connect, find_cluster

# As long as it is watched at rest.
IDLE_S = 10
IDS = SystemIds()
CLOCK = SystemClock()


def compare_sizes(report: Report, cluster: Cluster, what: str, sizes: tuple[tuple[int, str], ...]) -> None:
    """`sizes` are numbers of Pods, each with the namespace that they are in."""
    found = [(pods, _asked(what, cluster, namespace, pods)) for pods, namespace in sizes]
    for pods, one in found:
        title = f"{what} with {pods:,} Pods"
        report.alone(f"{title}, memory", "MB", lambda one=one: one["memory"], rounds=1)
        report.alone(f"{title}, CPU until they are known", "s", lambda one=one: one["cpu"], rounds=1)
        report.alone(f"{title}, CPU at rest", "% of a core", lambda one=one: one["idle"], rounds=1)
    (few, less), (many, more) = found
    growth = (more["memory"] - less["memory"]) / (many - few) * 1024
    report.alone(f"{what}, memory for each Pod more", "KB", lambda: growth, rounds=1)


def _asked(what: str, cluster: Cluster, namespace: str, pods: int) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "bench.iris.pod_memory",
        what,
        str(cluster.kubeconfig),
        namespace,
        str(pods),
    ]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def platform_settings(namespace: str) -> KubernetesSettings:
    return KubernetesSettings(
        namespace, "here:1", "worker:1", {"many": GroupTemplate(node_selector={"type": "kwok"})}
    )


async def order_slices(api: Client, namespace: str, count: int, at_once: int) -> None:
    """Slices of one worker Pod each. No node takes them: the Pods wait."""
    limit = anyio.CapacityLimiter(at_once)

    async def order(platform: KubernetesPlatform) -> None:
        shape = Resources(cpu_milli=10, memory=2**20)
        async with limit:
            await platform.create_slice(
                SliceRequest(IDS.new(SliceId), "many", 1, shape, (), "here:1", "token")
            )

    async with (
        KubernetesPlatform(platform_settings(namespace), api, CLOCK, system_rng()) as platform,
        anyio.create_task_group() as orders,
    ):
        for _ in range(count):
            orders.start_soon(order, platform)


async def _worker(api: Client, namespace: str, pods: int) -> AsyncGenerator[None]:
    engine = PodEngine(PodSettings(namespace, namespace, "busybox"), api, CLOCK, system_rng())
    changes = engine.changes()
    assert len(await anext(changes)) == pods
    yield
    await changes.aclose()


async def _controller(api: Client, namespace: str, pods: int) -> AsyncGenerator[None]:
    async with KubernetesPlatform(platform_settings(namespace), api, CLOCK, system_rng()) as platform:
        assert len(await platform.list_all_slices()) == pods
        yield


_KINDS: dict[str, Callable[[Client, str, int], AsyncGenerator[None]]] = {
    "worker": _worker,
    "controller": _controller,
}


async def _measure(what: str, kubeconfig: str, namespace: str, pods: int) -> dict[str, float]:
    async with connect(find_cluster(Path(kubeconfig)), "bench", CLOCK, system_rng()) as api:
        own = Path("/proc/self").resolve().name
        memory, cpu = memory_mb(int(own), "VmRSS"), process_time()
        async with asynccontextmanager(_KINDS[what])(api, namespace, pods):
            known = process_time()
            await CLOCK.sleep(Duration.of(seconds=IDLE_S))
            return {
                "memory": memory_mb(int(own), "VmRSS") - memory,
                "cpu": known - cpu,
                "idle": 100 * (process_time() - known) / IDLE_S,
            }


if __name__ == "__main__":
    print(json.dumps(anyio.run(_measure, sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))))
