"""Attempts as Pods beside bare Pods: one after the other on a real node, and many at once on simulated nodes.

A bare Pod has the same image, the same Python and the same function, and is made and watched over the same client. On
simulated nodes no runner answers: there the engine's part counts, from the first order to the last Pod seen Running.
NEORION_BENCH_PODS sets how many.
"""

import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import cloudpickle  # pyright: ignore[reportMissingTypeStubs] -- it has none

from bench.kit import Report
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.simulated import LABEL, PLAYED, SimulatedNodeGroup
from neorion.drydock.testing import namespace, shared_cluster
from neorion.iris.adapters.runtimes.container.engine import ContainerSpec, ContainerState
from neorion.iris.adapters.runtimes.container.runner_server import RunnerAddress
from neorion.iris.adapters.runtimes.container.runtime import ContainerRuntime
from neorion.iris.adapters.runtimes.kubernetes import PodEngine, PodSettings
from neorion.iris.model import AttemptId, Digest, FunctionCall, Resources, TaskEnvironment
from neorion.iris.ports import AttemptSpec
from neorion.iris.testing.runtime_waits import ended
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.kube import Selector
from neorion.keel.kube.client import Client, connect, find_cluster
from neorion.keel.kube.control import InformerFactory, Priority
from neorion.keel.kube.core import POD, Pod
from tests.node.pods import push_test_image
from tests.node.test_kubernetes_runtime import settings as pods_with_this_python

MANY = int(os.environ.get("NEORION_BENCH_PODS", "1000"))
# As many creates in flight as the autoscaler's clients have.
AT_ONCE = 16
NODES = 20
ROUNDS = 3
LEASE = Duration.of(minutes=30)
IDS = SystemIds()
CLOCK = SystemClock()
OPTIONS = ClusterOptions((SimulatedNodeGroup(NODES, "h100x8"),), nodes=1)
SIMULATED: dict[str, Any] = {
    "node_selector": {LABEL: "h100x8"},
    "tolerations": ({"key": PLAYED, "operator": "Exists"},),
}
BARE = "import cloudpickle, msgspec; (lambda: None)()"


def run(report: Report) -> None:
    with shared_cluster("bench-pods", ClusterManager.of(), OPTIONS) as cluster:
        anyio.run(push_test_image, cluster)
        report.compare(
            "one attempt as a Pod, start to end",
            "s",
            _timed(cluster, _attempt),
            ("a bare Pod, created and watched", _timed(cluster, _bare)),
        )
        report.compare(
            f"{MANY} attempts as Pods on simulated nodes, order to Running",
            "Pods/s",
            _rate(cluster, _attempts),
            ("bare Pods", _rate(cluster, _bares)),
            rounds=ROUNDS,
        )


T = TypeVar("T")
Work = Callable[[Cluster, Client, str], Coroutine[Any, Any, float]]


def _timed(cluster: Cluster, work: Work) -> Callable[[], float]:
    return lambda: anyio.run(_in_namespace, cluster, work)


def _rate(cluster: Cluster, work: Work) -> Callable[[], float]:
    return lambda: MANY / anyio.run(_in_namespace, cluster, work)


async def _in_namespace(cluster: Cluster, work: Work) -> float:
    api = connect(find_cluster(cluster.kubeconfig), "bench", CLOCK, system_rng())
    async with namespace(cluster) as name, api as client:
        return await work(cluster, client, name)


async def _attempt(cluster: Cluster, api: Client, name: str) -> float:
    host = str(cluster.layout.addresses.host)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        function = root / "function"
        data: bytes = cloudpickle.dumps(lambda: None)  # pyright: ignore[reportUnknownMemberType] -- untyped
        function.write_bytes(data)
        engine = PodEngine(pods_with_this_python(name), api, CLOCK, system_rng())
        address = RunnerAddress(host, host)
        async with ContainerRuntime(root / "runtime", engine, address, CLOCK, system_rng()) as runtime:
            await runtime.renew(LEASE)
            entry = FunctionCall(Digest("any"))
            spec = AttemptSpec(
                IDS.new(AttemptId), entry, TaskEnvironment(), (), Resources(), function=function
            )
            began = time.perf_counter()
            await runtime.start(spec)
            end = await ended(runtime, spec.attempt)
            took = time.perf_counter() - began
            assert end.well, end
            return took


async def _bare(_cluster: Cluster, api: Client, name: str) -> float:
    async with _watched(api, name) as phases:
        began = time.perf_counter()
        await api.create(POD, _bare_pod(name, "bare", pods_with_this_python(name)))
        await phases.until("Succeeded", 1)
        return time.perf_counter() - began


async def _attempts(_cluster: Cluster, api: Client, name: str) -> float:
    engine = PodEngine(pods_with_this_python(name, **SIMULATED), api, CLOCK, system_rng())
    running: set[AttemptId] = set()
    synced, done = anyio.Event(), anyio.Event()
    took = 0.0

    async def watch() -> None:
        async for batch in engine.changes():
            synced.set()
            running.update(one.attempt for one in batch if one.state is ContainerState.RUNNING)
            if len(running) == MANY:
                done.set()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        await synced.wait()
        began = time.perf_counter()
        await _each(
            engine.create,
            [ContainerSpec(IDS.new(AttemptId), Resources(cpu_milli=10), (), {}) for _ in range(MANY)],
        )
        await done.wait()
        took = time.perf_counter() - began
        group.cancel_scope.cancel()
    return took


async def _bares(_cluster: Cluster, api: Client, name: str) -> float:
    async with _watched(api, name) as phases:
        began = time.perf_counter()
        pods = pods_with_this_python(name, **SIMULATED)

        async def create(number: int) -> None:
            await api.create(POD, _bare_pod(name, f"bare-{number}", pods))

        await _each(create, range(MANY))
        await phases.until("Running", MANY)
        return time.perf_counter() - began


async def _each(work: Callable[[T], Coroutine[Any, Any, None]], items: Sequence[T]) -> None:
    queue = iter(items)

    async def worker() -> None:
        for item in queue:
            await work(item)

    async with anyio.create_task_group() as group:
        for _ in range(AT_ONCE):
            group.start_soon(worker)


class _Phases:
    """The phases that the Pods of a namespace have been seen in."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}
        self._changed = anyio.Event()

    def take(self, _before: Pod | None, after: Pod | None, _priority: Priority) -> None:
        if after is not None:
            self._seen[after.meta.name] = after.status.phase
            self._changed.set()

    async def until(self, phase: str, count: int) -> None:
        while sum(one == phase for one in self._seen.values()) < count:
            await self._changed.wait()
            self._changed = anyio.Event()


@asynccontextmanager
async def _watched(api: Client, name: str) -> AsyncGenerator[_Phases]:
    informers = InformerFactory(api, CLOCK, system_rng())
    phases = _Phases()
    pods = informers.of(POD, name, Selector())
    async with anyio.create_task_group() as group:
        group.start_soon(informers.run)
        await informers.wait_synced()
        pods.listen(phases.take)
        yield phases
        group.cancel_scope.cancel()


def _bare_pod(namespace_name: str, name: str, pods: PodSettings) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": pods.image,
        "command": [sys.executable, "-P", "-c", BARE],
        "resources": {"requests": {"cpu": "10m"}},
        "volumeMounts": list(pods.mounts),
    }
    return {
        "metadata": {"name": name, "namespace": namespace_name},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "nodeSelector": dict(pods.node_selector),
            "tolerations": list(pods.tolerations),
            "containers": [container],
            "volumes": list(pods.volumes),
        },
    }
