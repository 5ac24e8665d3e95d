"""Development servers on simulated nodes: from their creation until all are ready, by ours and by controller-runtime.

Each run has a cluster of its own: real API server, controllers and scheduler, simulated nodes, volumes that are folders.
NEORION_BENCH_SERVERS says how many servers, as in 100,1000; NEORION_BENCH_ROUNDS how often.
"""

import os
import re
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio
import yaml

from bench.devservers.sides import NAMESPACE, Place, built, ours, reference, side, spread
from bench.devservers.world import World
from bench.kit import Report
from bench.peers import Absent
from bench.process import cluster_cpu_s, cpu_s, peak_mb
from neorion.devservers.model import Phase
from neorion.devservers.model.kube_types import DEVSERVERFLAVORS, DEVSERVERS, DevServerObject
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.simulated import SimulatedNodeGroup
from neorion.drydock.storage import publish_storage, storage_part
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube import Added, ObjectKey, ObjectMeta, condition
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.control import InformerFactory, Priority
from neorion.keel.kube.core import DEFINITION, SERVICE, SERVICE_ACCOUNT, Namespace
from neorion.keel.kube.core import NAMESPACE as NAMESPACE_KIND

SIZES = [int(size) for size in os.environ.get("NEORION_BENCH_SERVERS", "100,1000").split(",")]
ROUNDS = int(os.environ.get("NEORION_BENCH_ROUNDS", "1"))
CRDS = Path(__file__).parent.parent.parent / "infra/devservers/crds"
# Requests in flight while the servers are created.
AT_ONCE = 32
# A node takes 110 pods.
PODS_PER_NODE = 100
# Services that somebody deletes, one after the other: how soon each is back is the operator's answer to an event.
DELETED = 100
STEADY_S = 10.0
PATIENCE_S = 3600.0
_REQUESTS = re.compile(
    rb'^apiserver_request_total\{[^}]*resource="(\w+)",scope="[^"]*",subresource="(\w*)",verb="(\w+)"[^}]*\} (\S+)$',
    re.MULTILINE,
)
# Written by operators alone, as far as these verbs go: controllers of Kubernetes PUT, and people POST servers.
_OURS = {
    (resource, subresource, verb)
    for resource in ("devservers", "services", "persistentvolumeclaims", "deployments", "configmaps")
    for subresource in ("", "status")
    for verb in ("POST", "PATCH", "APPLY")
} - {("devservers", "", "POST"), ("persistentvolumeclaims", "status", "PATCH")}


SPEC: Final = {
    "flavor": "bench",
    "persistentHomeSize": "1Gi",
    "owner": "ann@example.com",
    # Nobody looks into pods that are not there.
    "lifecycle": {"autoShutdown": False},
}

Popen = subprocess.Popen[bytes]


Figures = dict[str, tuple[str, Callable[["Run"], float]]]


@dataclass(slots=True)
class Run:
    """What one operator took for one size."""

    ready_s: float = 0.0
    cpu_s: float = 0.0
    cluster_cpu_s: float = 0.0
    memory_mb: float = 0.0
    writes: float = 0.0
    idle_writes: float = 0.0
    restart_s: float = 0.0
    restart_cpu_s: float = 0.0
    restart_memory_mb: float = 0.0
    answers_ms: list[float] = field(default_factory=list[float], repr=False)


class Eye:
    """The cluster as somebody outside sees it."""

    def __init__(self, api: Client) -> None:
        self.api = api
        self.informers = InformerFactory(api, SystemClock(), system_rng())
        self.servers = self.informers.of(DEVSERVERS)
        self.services = self.informers.of(SERVICE)
        self.done = set[ObjectKey]()
        self._changed = anyio.Event()
        self.servers.listen(self._count)
        self.services.listen(lambda _before, _after, _lane: self._changed.set())

    def _count(self, _before: DevServerObject | None, after: DevServerObject | None, _lane: Priority) -> None:
        if after is not None and after.status.phase is Phase.RUNNING:
            self.done.add(after.meta.key)
        self._changed.set()

    async def until(self, holds: Callable[[], bool], process: Popen | None = None) -> None:
        with anyio.fail_after(PATIENCE_S):
            while not holds():
                if process is not None and process.poll() is not None:
                    raise Absent("an operator ended before its work was done")
                with anyio.move_on_after(1):
                    await self._changed.wait()
                self._changed = anyio.Event()

    async def writes(self) -> float:
        """Of the operator, since the cluster began."""
        found = _REQUESTS.findall(await self.api.read("/metrics"))
        return sum(float(number) for *what, number in found if tuple(map(bytes.decode, what)) in _OURS)


async def prepare(cluster: Cluster, api: Client) -> None:
    async with cluster.api() as plain:
        await publish_storage(plain)
    await cluster.ensure(storage_part(cluster.layout, cluster.pki))
    for file in sorted(CRDS.glob("*.yaml")):
        defined = await api.apply(DEFINITION, yaml.safe_load(file.read_text()), "bench")
        while (told := condition(defined.status.conditions, "Established")) is None or not told.holds:
            await anyio.sleep(0.05)
            defined = await api.get(DEFINITION, defined.meta.name)
    await api.apply(NAMESPACE_KIND, Namespace(ObjectMeta(name=NAMESPACE)), "bench")
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    await api.create(DEVSERVERFLAVORS, {"metadata": {"name": "bench"}, "spec": {"resources": resources}})


async def settle(api: Client, size: int) -> None:
    """The namespaces of the servers, with what Kubernetes puts into each."""
    names = {spread(number).namespace for number in range(size)}
    for name in sorted(names):
        await api.create(NAMESPACE_KIND, Namespace(ObjectMeta(name=name)))
    with anyio.fail_after(PATIENCE_S):
        async with api.watch(SERVICE_ACCOUNT) as events:
            async for event in events:
                if isinstance(event, Added):
                    names.discard(event.object.meta.namespace)
                if not names:
                    return


async def create(api: Client, size: int) -> None:
    limit = anyio.Semaphore(AT_ONCE)

    async def make(number: int) -> None:
        key = spread(number)
        meta = {"name": key.name, "namespace": key.namespace}
        async with limit:
            await api.create(DEVSERVERS, {"metadata": meta, "spec": dict(SPEC)})

    async with anyio.create_task_group() as group:
        for number in range(size):
            group.start_soon(make, number)


def service(server: ObjectKey) -> ObjectKey:
    return ObjectKey(server.namespace, f"{server.name}-ssh")


async def answer(eye: Eye, process: Popen, size: int, run: Run, place: Place) -> None:
    """Services are deleted one at a time: from sending the deletion until another is seen from outside."""
    for number in range(DELETED):
        key = service(place(number * size // DELETED))
        old = eye.services.get(key)
        assert old is not None
        began = time.monotonic()
        await eye.api.delete(SERVICE, key.name, key.namespace)

        def back(key: ObjectKey = key, uid: str = old.meta.uid) -> bool:
            new = eye.services.get(key)
            return new is not None and new.meta.uid != uid

        await eye.until(back, process)
        run.answers_ms.append((time.monotonic() - began) * 1e3)


async def restart(eye: Eye, command: list[str], name: str, size: int, run: Run) -> None:
    """Some services, spread over all servers, are deleted while nobody operates; all back means all servers seen."""
    step = max(1, size // DELETED)
    keys = [service(spread(number)) for number in range(0, size, step)]
    for key in keys:
        await eye.api.delete(SERVICE, key.name, key.namespace)
    await eye.until(lambda: not any(eye.services.get(key) for key in keys))
    began = time.monotonic()
    with side(f"{name}-again", command) as process:
        await eye.until(lambda: all(eye.services.get(key) for key in keys), process)
        run.restart_s = time.monotonic() - began
        run.restart_cpu_s, run.restart_memory_mb = cpu_s(process.pid), peak_mb(process.pid)


@dataclass(frozen=True, slots=True)
class Stage:
    """On what the servers are put: Kubernetes with as many simulated nodes as they need, or an API server alone, and the rest played."""

    name: str
    played: bool = False

    def wishes(self, size: int) -> ClusterOptions:
        return (
            ClusterOptions()
            if self.played
            else ClusterOptions(simulated=(SimulatedNodeGroup(size // PODS_PER_NODE + 2),))
        )


WHOLE = Stage("created → all Running")


async def one_run(name: str, command: Callable[[Cluster], list[str]], size: int, stage: Stage) -> Run:
    run = Run()
    async with (
        ClusterManager.of().cluster("bench-devservers", stage.wishes(size)) as cluster,
        connect(read_kubeconfig([cluster.kubeconfig]).cluster(), "bench-people/1") as api,
        anyio.create_task_group() as group,
    ):
        await prepare(cluster, api)
        await settle(api, size)
        if stage.played:
            for part in ("kube-controller-manager", "kube-scheduler"):
                await cluster.stop(part)
            group.start_soon(World(api).run)
        eye = Eye(api)
        group.start_soon(eye.informers.run)
        await eye.informers.wait_synced()
        with side(name, command(cluster)) as process:
            await _work(eye, cluster, process, size, run)
            await answer(eye, process, size, run, spread)
        await restart(eye, command(cluster), name, size, run)
        group.cancel_scope.cancel()
    print(f"{name} {size:,}: {run}", flush=True)
    return run


async def _work(eye: Eye, cluster: Cluster, process: Popen, size: int, run: Run) -> None:
    before = await eye.writes()
    began, spent = time.monotonic(), cluster_cpu_s(cluster)
    await create(eye.api, size)
    await eye.until(lambda: len(eye.done) == size, process)
    run.ready_s = time.monotonic() - began
    run.cluster_cpu_s = cluster_cpu_s(cluster) - spent
    run.cpu_s, run.memory_mb = cpu_s(process.pid), peak_mb(process.pid)
    run.writes = (await eye.writes() - before) / size
    await anyio.sleep(STEADY_S / 2)
    before = await eye.writes()
    await anyio.sleep(STEADY_S)
    run.idle_writes = await eye.writes() - before


async def measure(report: Report, stage: Stage = WHOLE) -> None:
    program = await built()
    sides: dict[str, Callable[[Cluster], list[str]]] = {
        "ours": ours,
        "reference": lambda cluster: reference(cluster, program),
    }
    for size in SIZES:
        runs: dict[str, list[Run]] = {name: [] for name in sides}
        for _ in range(ROUNDS):
            for name, command in sides.items():
                runs[name].append(await one_run(name, command, size, stage))
        figures: Figures = {
            stage.name: ("s", lambda run: run.ready_s),
            "CPU until then": ("CPU-s", lambda run: run.cpu_s),
            "CPU of Kubernetes until then": ("CPU-s", lambda run: run.cluster_cpu_s),
            "memory": ("MB", lambda run: run.memory_mb),
            "writes per server": ("writes", lambda run: run.writes),
            "restart → all servers seen": ("s", lambda run: run.restart_s),
            "CPU of the restart": ("CPU-s", lambda run: run.restart_cpu_s),
            "memory after the restart": ("MB", lambda run: run.restart_memory_mb),
        }
        tell(report, size, runs, figures)


def tell(report: Report, size: int, runs: dict[str, list[Run]], figures: Figures) -> None:
    answers: Figures = {
        "Service deleted → back, p50": ("ms", lambda run: statistics.median(run.answers_ms)),
        "Service deleted → back, p99": ("ms", lambda run: statistics.quantiles(run.answers_ms, n=100)[98]),
    }
    for what, (unit, of) in {**figures, **answers}.items():
        mine, theirs = (iter([of(run) for run in runs[name]]) for name in ("ours", "reference"))
        report.compare(
            f"{size:,} servers, {what}",
            unit,
            lambda values=mine: next(values),
            ("controller-runtime", lambda values=theirs: next(values)),
            rounds=len(runs["ours"]),
        )
    idle = sum(run.idle_writes for run in runs["ours"])
    report.alone(f"{size:,} servers, writes in {STEADY_S:.0f} s of rest", "writes", lambda: idle, rounds=1)


def run(report: Report) -> None:
    anyio.run(measure, report)
